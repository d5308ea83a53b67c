package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/etcdapi"
)

// askPrefixes asks the server for the totals of all prefixes.
func (o *topOptions) askPrefixes(ctx context.Context) ([]store.PrefixTotals, error) {
	c, err := o.dial()
	if err != nil {
		return nil, withExit(exitUsage, err)
	}
	defer c.close()
	limited, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	var page etcdapi.PrefixesPage
	asking, err := o.login(limited, c)
	if err == nil {
		err = c.page(asking, etcdapi.PrefixesPath, &page)
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s for its prefixes: %w", o.endpoint, o.explain(ctx, err))
	}
	return page.Prefixes, nil
}

// page reads one of the server's pages in JSON, with the token that login has put into ctx. What
// keeps it from an answer is an error as those of gRPC are, so that explain knows it.
func (c *client) page(ctx context.Context, path string, to any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.pageURL+path, nil)
	if err != nil {
		return err
	}
	if md, ok := metadata.FromOutgoingContext(ctx); ok {
		for _, token := range md.Get(rpctypes.TokenFieldNameGRPC) {
			req.Header.Set("Authorization", token)
		}
	}
	resp, err := c.pages.Do(req)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return grpcstatus.Error(codes.DeadlineExceeded, err.Error())
	case err != nil:
		return grpcstatus.Error(codes.Unavailable, err.Error())
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return pageError(resp)
	}
	if err := json.NewDecoder(resp.Body).Decode(to); err != nil {
		return fmt.Errorf("its page %s can not be read: %w; is it tarn serve?", path, err)
	}
	return nil
}

// pageError is what a page says instead of an answer.
func pageError(resp *http.Response) error {
	var refusal struct {
		Code    codes.Code `json:"code"`
		Message string     `json:"message"`
	}
	switch err := json.NewDecoder(resp.Body).Decode(&refusal); {
	case err == nil && refusal.Code != codes.OK:
		return grpcstatus.Error(refusal.Code, refusal.Message)
	case resp.StatusCode == http.StatusNotFound:
		return fmt.Errorf("it has no page %s; is it tarn serve, of this version, and the client URL?", resp.Request.URL.Path)
	default:
		return fmt.Errorf("its page %s answers %s", resp.Request.URL.Path, resp.Status)
	}
}
