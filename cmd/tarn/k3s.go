package main

import "github.com/spf13/cobra"

func newK3sCommand(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "k3s",
		Short: "Let k3s keep its data in Tarn",
		Long: `Let k3s keep its data in Tarn instead of SQLite or an embedded etcd.

Exit codes: 0 done, 1 failed, 2 the command line is not valid, 4 refused.`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newK3sSetupCommand(p))
	return cmd
}
