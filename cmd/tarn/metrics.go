package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// metrics reads the server's metrics page. They are an extra: the result is
// empty where the page can not be had, behind a proxy for gRPC alone for example.
func (c *client) metrics(ctx context.Context) map[string]float64 {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.pageURL+"/metrics", nil)
	if err != nil {
		return nil
	}
	resp, err := c.pages.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil
	}
	return parseMetrics(resp.Body)
}

// parseMetrics reads the metrics without labels of a page in Prometheus' text form.
func parseMetrics(page io.Reader) map[string]float64 {
	m := map[string]float64{}
	lines := bufio.NewScanner(page)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(text, 64); err == nil && !strings.Contains(name, "{") {
			m[name] = v
		}
	}
	return m
}
