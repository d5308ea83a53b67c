package main

import (
	"strings"
	"testing"
	"time"
)

func turnOf(server string, round int, rate, p99 float64, failures ...failure) turnState {
	return turnState{
		Server: server, Round: round, Yardstick: yardstick{Spin: 20, Sync: float64(round)},
		Figures:  []figure{{"a", "ops/s", rate}, {"a", "p99 ms", p99}},
		Failures: failures,
	}
}

func TestTable(t *testing.T) {
	o := &outcome{Workload: "w", About: "about it", Servers: []string{"etcd", "tarn", "kine"}, Turns: []turnState{
		turnOf("etcd", 1, 1000, 2), turnOf("tarn", 1, 3000, 0.5), turnOf("kine", 1, 10, 100),
		turnOf("etcd", 2, 2000, 4), turnOf("tarn", 2, 4000, 1),
		{Server: "kine", Round: 2, Yardstick: yardstick{20, 2}, Failures: []failure{{"a", "it lost a key", false}}},
		turnOf("etcd", 3, 1000, 2), turnOf("tarn", 3, 1000, 2, failure{"b", "unknown method", true}), turnOf("kine", 3, 10, 100),
	}}
	o.Turns[0].Figures = append(o.Turns[0].Figures, figure{"b", "ms", 12.34})
	var out strings.Builder
	if err := o.print(&out); err != nil {
		t.Fatal(err)
	}
	want := `
w: about it

           etcd  tarn         tarn : etcd       kine    kine : etcd
a  ops/s   1000  3000         2.00 (1.00–3.00)  failed  –
   p99 ms  2.00  1.00         0.25 (0.25–1.00)  failed  –
b  ms      12.3  not offered  –                 –       –
FAILED: kine, round 2, a: it lost a key
not offered: tarn, round 3, b: unknown method
machine: spin 20.0 (20.0–20.0) ms, fdatasync 2.00 (1.00–3.00) ms
`
	if got := out.String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if !o.failed() {
		t.Error("a run with a failure is good")
	}
}

// Without the base there is no ratio, and what nobody measured is no line.
func TestTableWithoutBase(t *testing.T) {
	o := &outcome{Servers: []string{"etcd", "tarn"}, Turns: []turnState{
		{Server: "etcd", Round: 1, Failures: []failure{{"", "it does not start", false}}},
		turnOf("tarn", 1, 123.4, 5),
	}}
	var out strings.Builder
	if err := o.print(&out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "failed  123   –") || !strings.Contains(got, "the whole turn: it does not start") {
		t.Errorf("got %s", got)
	}
}

func TestStatistics(t *testing.T) {
	if got := median([]float64{3, 1, 2, 10}); got != 2.5 {
		t.Errorf("median %v", got)
	}
	took := []time.Duration{4 * time.Millisecond, time.Millisecond, 3 * time.Millisecond, 2 * time.Millisecond}
	for q, want := range map[float64]float64{0: 1, 0.5: 2, 0.75: 3, 0.99: 4, 1: 4} {
		if got := quantile(took, q); got != want {
			t.Errorf("quantile %v: got %v, want %v", q, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0", 12345.6: "12346", 99.96: "100", 99.94: "99.9", 9.996: "10.0", 0.25: "0.25", 0.0312: "0.031"} {
		if got := short(v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
}
