package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

var byteUnits = []struct {
	suffix string
	size   int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// byteSizeValue takes a number of bytes, as etcd's flags do, or one with a unit.
// Numbers below least are refused; valid tells what the special ones mean.
func byteSizeValue(p *int64, least int64, valid string) pflag.Value {
	if valid == "" {
		example := max(least, 16<<20)
		valid = fmt.Sprintf("a number of bytes of at least %s, such as %d or %s", exactBytes(least), example, exactBytes(example))
	}
	return &value[int64]{p, "bytes", valid,
		func(s string) (int64, error) {
			n, err := parseBytes(s)
			if err == nil && n < least {
				err = errNotValid
			}
			return n, err
		},
		exactBytes}
}

func parseBytes(s string) (int64, error) {
	unit := int64(1)
	for _, u := range byteUnits {
		if number, ok := strings.CutSuffix(s, u.suffix); ok {
			s, unit = strings.TrimSpace(number), u.size
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > math.MaxInt64/unit || n < math.MinInt64/unit {
		return 0, errNotValid
	}
	return n * unit, nil
}

// exactBytes writes a size so that parseBytes reads the same number.
func exactBytes(n int64) string {
	for _, u := range byteUnits {
		if n != 0 && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}

// roughBytes writes a size for people: three digits and a unit.
func roughBytes(n int64) string {
	for _, u := range byteUnits {
		if n >= u.size {
			return strconv.FormatFloat(float64(n)/float64(u.size), 'g', 3, 64) + " " + u.suffix
		}
	}
	return strconv.FormatInt(n, 10) + " B"
}
