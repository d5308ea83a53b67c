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
	page := c.metricsPage(ctx)
	if page == nil {
		return nil
	}
	defer page.Close()
	return parseMetrics(page)
}

// metricsPage opens the page, or returns nil.
func (c *client) metricsPage(ctx context.Context) io.ReadCloser {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.pageURL+"/metrics", nil)
	if err != nil {
		return nil
	}
	resp, err := c.pages.Do(req)
	if err != nil {
		return nil
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil
	}
	return resp.Body
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
