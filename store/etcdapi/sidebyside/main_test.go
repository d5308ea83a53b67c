package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestMain lets the test binary be the floor, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == floorArg {
		if err := serveFloor(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestServerFlag(t *testing.T) {
	var f serverFlag
	if err := f.Set("kine=kine --endpoint x=y --listen 127.0.0.1:{port}"); err != nil {
		t.Fatal(err)
	}
	if f[0].name != "kine" || len(f[0].command) != 5 || f[0].command[2] != "x=y" {
		t.Errorf("got %+v", f[0])
	}
	for text, want := range map[string]string{
		"kine --port {port}": "not of the form", "x=": "not of the form", "x=server {dir}": "not of the form",
		"etcd=etcd {port}": "taken", "kine=other {port}": "twice",
	} {
		if err := f.Set(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", text, err, want)
		}
	}
}

func TestChooseWorkloads(t *testing.T) {
	chosen, err := chooseWorkloads("put,list")
	if err != nil || len(chosen) != 2 || chosen[1].name != "list" {
		t.Errorf("got %v, %v", chosen, err)
	}
	if chosen, err = chooseWorkloads(""); err != nil || len(chosen) != len(workloads)-1 {
		t.Errorf("got %d workloads without names, %v", len(chosen), err)
	}
	if _, err := chooseWorkloads("put,bananas"); err == nil || !strings.Contains(err.Error(), "bananas") {
		t.Errorf("got error %v", err)
	}
}
