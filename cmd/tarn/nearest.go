package main

import (
	"fmt"
	"strings"
)

// didYouMean is the part of an error text that offers the name nearest to a
// misspelled one; empty if none is near.
func didYouMean(name string, valid []string) string {
	best, bestDistance := "", max(2, len(name)/3)+1
	for _, v := range valid {
		if d := editDistance(strings.ToLower(name), v); d < bestDistance {
			best, bestDistance = v, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// editDistance is the number of bytes to insert, delete or replace that turns
// a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
