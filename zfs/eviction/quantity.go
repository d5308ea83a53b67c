package eviction

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

var quantityPattern = regexp.MustCompile(`^([+-]?)([0-9]*)\.?([0-9]*)(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?[0-9]{1,9}))?$`)

var binaryUnits = "KMGTPE"

var decimalUnits = map[string]int{"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}

// parseQuantity reads a quantity of Kubernetes, such as 2Gi, 500M or 1e9, and rounds
// it up to a whole number, as the kubelet does when it counts.
func parseQuantity(s string) (int64, error) {
	m := quantityPattern.FindStringSubmatch(s)
	if m == nil || s == "" {
		return 0, fmt.Errorf("%q is not a quantity such as 2Gi", s)
	}
	// Without any digits it is 0: that is how the kubelet reads it.
	number, ok := new(big.Rat).SetString(m[1] + "0" + m[2] + "." + m[3] + "0")
	if !ok {
		return 0, fmt.Errorf("%q is not a quantity such as 2Gi", s)
	}
	switch unit, exponent := m[4], m[5]; {
	case strings.HasSuffix(unit, "i"):
		bits := 10 * uint(1+strings.IndexByte(binaryUnits, unit[0]))
		number.Mul(number, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), bits)))
	case unit != "":
		number.Mul(number, powerOfTen(decimalUnits[unit]))
	case exponent != "":
		n, err := strconv.Atoi(exponent)
		if err != nil {
			return 0, err
		}
		number.Mul(number, powerOfTen(min(max(n, -99), 99))) // beyond that, all is much too much or next to nothing
	}
	whole, rest := new(big.Int).QuoRem(number.Num(), number.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	if rest.Sign() < 0 {
		whole.Sub(whole, big.NewInt(1))
	}
	if !whole.IsInt64() {
		if whole.Sign() < 0 {
			return math.MinInt64, nil
		}
		return math.MaxInt64, nil // more than any disk has
	}
	return whole.Int64(), nil
}

func powerOfTen(n int) *big.Rat {
	power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(n, -n))), nil))
	if n < 0 {
		power.Inv(power)
	}
	return power
}

// formatQuantity writes bytes with the largest binary unit that leaves a whole
// number: 2Gi, 1536Mi.
func formatQuantity(n uint64) string {
	unit := 0
	for n >= 1024 && n%1024 == 0 && unit < len(binaryUnits) {
		n, unit = n/1024, unit+1
	}
	if unit == 0 {
		return strconv.FormatUint(n, 10)
	}
	return strconv.FormatUint(n, 10) + binaryUnits[unit-1:unit] + "i"
}

// FormatBytes writes bytes for people: 1.5 GiB.
func FormatBytes(n uint64) string {
	if n < 1024 {
		return strconv.FormatUint(n, 10) + " bytes"
	}
	value, unit := float64(n), -1
	for value >= 1024 && unit < len(binaryUnits)-1 {
		value, unit = value/1024, unit+1
	}
	text := strings.TrimSuffix(strconv.FormatFloat(value, 'f', 1, 64), ".0")
	return text + " " + binaryUnits[unit:unit+1] + "iB"
}

// amount is the value of a threshold or a minimum reclaim: a share of the capacity
// if percent, else a number.
type amount struct {
	percent bool
	share   float32 // 0.05 for 5%
	number  int64
}

var errNotPercent = errors.New("it is not a percentage such as 10%")

// parseAmount reads what comes behind a signal. It computes a percentage with as few
// bits as the kubelet, so that both come to the same byte.
func parseAmount(s string) (amount, error) {
	if !strings.HasSuffix(s, "%") {
		n, err := parseQuantity(s)
		return amount{number: n}, err
	}
	value, err := strconv.ParseFloat(strings.TrimRight(s, "%"), 32)
	if err != nil {
		return amount{}, fmt.Errorf("%q: %w", s, errNotPercent)
	}
	return amount{percent: true, share: float32(value) / 100}, nil
}

// of is the amount in the unit of the capacity.
func (a amount) of(capacity int64) int64 {
	if !a.percent {
		return a.number
	}
	return int64(float64(capacity) * float64(a.share))
}
