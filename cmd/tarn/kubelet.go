package main

import "github.com/spf13/cobra"

func newKubeletCommand(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubelet",
		Short: "Keep the kubelet from misjudging ZFS",
		Long: `See what the kubelet of this machine makes of its file systems, and write the
configuration that protects a node on ZFS.

On ZFS some versions of the kubelet take a dataset for larger than it is, so that
they evict pods although there is room, and log lines about inodes every 10 seconds.

Exit codes: 0 done or all is well, 1 failed, 2 the command line is not valid, 3
warnings, 4 serious findings or refused, 5 not everything could be looked at.`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newKubeletCheckCommand(p), newKubeletConfigCommand(p))
	return cmd
}
