package main

import (
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
)

// unitState is what systemctl show says of a unit.
type unitState map[string]string

func (u unitState) installed() bool { return u["LoadState"] != "not-found" && u["LoadState"] != "" }
func (u unitState) enabled() bool {
	return u["UnitFileState"] == "enabled" || u["UnitFileState"] == "enabled-runtime"
}

// doctorUnits are the units that are looked at.
var doctorUnits = []string{"tarn.socket", "tarn.service", "tarn-snapshot.timer", "tarn-verify.timer",
	"tarn-snapshot.service", "tarn-verify.service", "k3s.service"}

// lookAtUnits asks systemd.
func (o *doctorOptions) lookAtUnits(ctx context.Context, f *findings) {
	if o.machine.Run == nil {
		return
	}
	args := append([]string{"show", "--property=Id,LoadState,ActiveState,SubState,UnitFileState,Result,NRestarts"}, doctorUnits...)
	out, err := o.machine.Run(ctx, "systemctl", args...)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		f.note("systemd", "it is not here, so its units are not looked at")
		return
	case err != nil:
		f.note("systemd", "it does not run here (%v), so its units are not looked at", err)
		return
	}
	judgeUnits(f, parseUnitStates(out))
}

// parseUnitStates reads the blocks of systemctl show, with a blank line between units.
func parseUnitStates(text string) map[string]unitState {
	units := map[string]unitState{}
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		u := unitState{}
		for line := range strings.Lines(block) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
				u[key] = value
			}
		}
		if id := u["Id"]; id != "" {
			units[id] = u
		}
	}
	return units
}

func judgeUnits(f *findings, units map[string]unitState) {
	socket, service := units["tarn.socket"], units["tarn.service"]
	if !socket.installed() && !service.installed() {
		f.note("tarn.service", "Tarn is not installed as a service of the system, so nothing starts it at boot; the package does")
	} else {
		judgeServer(f, socket, service)
	}
	judgeTimer(f, "tarn-snapshot.timer", units, "nobody takes snapshots")
	judgeTimer(f, "tarn-verify.timer", units, "nobody proves that snapshots can be restored")
	if k3s := units["k3s.service"]; k3s["ActiveState"] == "failed" {
		f.problem("k3s.service", "journalctl -u k3s.service says why", "it has failed (%s)", k3s["Result"])
	}
}

// judgeServer looks at the server's two units. The socket alone starts the service when somebody connects.
func judgeServer(f *findings, socket, service unitState) {
	const log = "journalctl -u tarn.service says why; docs/running.md explains the exit codes"
	switch {
	case service["ActiveState"] == "failed":
		f.problem("tarn.service", log, "it has failed (%s)", service["Result"])
	case socket["ActiveState"] == "failed":
		f.problem("tarn.socket", "journalctl -u tarn.socket says why: an address is often taken by another process", "it has failed (%s)", socket["Result"])
	case service["ActiveState"] == "activating":
		f.warning("tarn.service", log, "it is starting (%s)", service["SubState"])
	case service["ActiveState"] == "active":
		f.ok("tarn.service", "running")
	case socket["ActiveState"] == "active":
		f.ok("tarn.socket", "listening; the service starts with the first connection")
	default:
		f.warning("tarn.service", "systemctl enable --now tarn.socket", "neither the service nor its socket is active")
	}
	if socket.installed() && !socket.enabled() {
		f.warning("tarn.socket", "systemctl enable --now tarn.socket", "it is not enabled: clients are refused at boot and during an upgrade until the service runs, and k3s then waits longer than needed")
	}
	if n, err := strconv.Atoi(service["NRestarts"]); err == nil && n > 0 {
		f.warning("tarn.service", log, "systemd had to restart it %d time(s)", n)
	}
}

func judgeTimer(f *findings, name string, units map[string]unitState, otherwise string) {
	u := units[name]
	job := strings.TrimSuffix(name, ".timer") + ".service"
	switch {
	case !u.installed():
		return // the section about the dataset says what is missing
	case units[job]["ActiveState"] == "failed":
		f.problem(name, "journalctl -u "+job+" says why", "the last run of %s has failed (%s)", job, units[job]["Result"])
	case u["ActiveState"] != "active" || !u.enabled():
		f.warning(name, "systemctl enable --now "+name, "it is not enabled, or does not run: %s", otherwise)
	default:
		f.ok(name, "enabled and running")
	}
}
