package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tarn-kv/tarn/store/etcdapi"
)

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-1": -1, "2147483648": 2 << 30, "2GiB": 2 << 30, "16 MiB": 16 << 20, "1536KiB": 3 << 19,
		"9223372036854775807": math.MaxInt64,
	} {
		if got, err := parseBytes(text); err != nil || got != want {
			t.Errorf("parseBytes(%q) = %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "GiB", "1.5GiB", "2GB", "12q", "9223372036854775807KiB", "0x10"} {
		if got, err := parseBytes(text); err == nil {
			t.Errorf("parseBytes(%q) = %d, want an error", text, got)
		}
	}
	for _, n := range []int64{0, 1, -1, 1023, 1024, 2 << 30, 2<<30 + 1, math.MaxInt64, math.MinInt64} {
		if got, err := parseBytes(exactBytes(n)); err != nil || got != n {
			t.Errorf("%d written as %q and read as %d, %v", n, exactBytes(n), got, err)
		}
	}
}

// Whoever types an example that a message gives is not told the same again.
func TestExamplesAreValid(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			checked, ok := f.Value.(interface{ Check(string) error })
			if !ok {
				return
			}
			_, examples, ok := strings.Cut(checked.Check("").Error(), " such as ")
			if !ok {
				return
			}
			examples, _, _ = strings.Cut(strings.ReplaceAll(examples, ", separated by commas", ""), ";")
			for _, example := range strings.Split(strings.ReplaceAll(examples, " or ", ", "), ", ") {
				if err := checked.Check(example); err != nil {
					t.Errorf("%s --%s: the example %s is refused: %v", cmd.CommandPath(), f.Name, example, err)
				}
			}
		})
		for _, below := range cmd.Commands() {
			walk(below)
		}
	}
	walk(newRootCommand(process{}))
}

func TestShortDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 5 * time.Second: "5s", 10 * time.Minute: "10m", time.Hour: "1h", 90 * time.Minute: "1h30m",
		time.Hour + time.Second: "1h0m1s", 100 * time.Millisecond: "100ms",
	} {
		got := shortDuration(d)
		if back, err := time.ParseDuration(got); got != want || err != nil || back != d {
			t.Errorf("%v: %q, read back as %v, %v; want %q", d, got, back, err, want)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	valid := []string{"data-dir", "log-level", "log-format", "name"}
	for name, want := range map[string]string{
		"datadir": "data-dir", "log_level": "log-level", "Data-Dir": "data-dir", "nme": "name", "zzzzzzzz": "",
	} {
		got := didYouMean(name, valid)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestExposed(t *testing.T) {
	for text, want := range map[string]bool{
		"http://127.0.0.1:2379": false, "http://127.8.0.1:1": false, "http://[::1]:2379": false,
		"http://localhost:2379": false, "unix:///run/tarn.sock": false,
		"http://0.0.0.0:2379": true, "http://[::]:2379": true, "http://:2379": true,
		"https://192.168.1.2:2379": true, "http://node.example:2379": true,
	} {
		u, err := etcdapi.ParseListenURL(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := exposed(u); got != want {
			t.Errorf("%s: exposed is %v", text, got)
		}
	}
}

func TestAdvertised(t *testing.T) {
	list, err := parseURLs("http://0.0.0.0:2379, https://10.1.2.3:2379, unix:///run/tarn.sock")
	if err != nil {
		t.Fatal(err)
	}
	got := urlTexts(advertised(list))
	if strings.Contains(got[0], "0.0.0.0") || !strings.HasSuffix(got[0], ":2379") {
		t.Errorf("every address is advertised as %s, to which nobody can connect", got[0])
	}
	if got[1] != "https://10.1.2.3:2379" || got[2] != "unix:///run/tarn.sock" {
		t.Errorf("advertised %v", got[1:])
	}
}
