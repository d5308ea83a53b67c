package main

import (
	"fmt"
	"strings"
)

// lineDiff shows how one text becomes another one, line by line: "-" for a line that goes and "+" for one
// that comes. It is meant for files of some dozens of lines.
func lineDiff(before, after string) string {
	a, b := splitLines(before), splitLines(after)
	// same[i][j] is how many lines a[i:] and b[j:] have in common, in order.
	same := make([][]int, len(a)+1)
	for i := range same {
		same[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				same[i][j] = same[i+1][j+1] + 1
			} else {
				same[i][j] = max(same[i+1][j], same[i][j+1])
			}
		}
	}
	var out strings.Builder
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			fmt.Fprintln(&out, "  "+a[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && same[i+1][j] >= same[i][j+1]:
			fmt.Fprintln(&out, "- "+a[i])
			i++
		default:
			fmt.Fprintln(&out, "+ "+b[j])
			j++
		}
	}
	return out.String()
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
