package main

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tarn-kv/tarn/store/etcdapi"
)

// What can be given where URLs are.
const (
	validListenURLs = "URLs such as http://127.0.0.1:2379, https://0.0.0.0:2379 or unix:///run/tarn/tarn.sock, separated by commas"
	validAdvertised = "URLs that clients can connect to, such as https://10.0.0.5:2379, separated by commas"
	validEndpoint   = "one URL such as http://127.0.0.1:2379, https://10.0.0.5:2379 or unix:///run/tarn/tarn.sock"
)

// Kinds of values that a configuration file may give as lists.
const (
	kindURLs    = "urls"
	kindNames   = "names"
	kindIgnored = "ignored"
)

func takesList(f *pflag.Flag) bool {
	kind := f.Value.Type()
	return kind == kindURLs || kind == kindNames || kind == kindIgnored
}

// urlsValue takes a comma-separated list of URLs, as etcd's flags do. what says
// in an error which sort of URL is wrong.
func urlsValue(p *[]etcdapi.ListenURL, what, valid string) pflag.Value {
	return &value[[]etcdapi.ListenURL]{p, kindURLs, valid,
		func(s string) ([]etcdapi.ListenURL, error) {
			list, err := parseURLs(s)
			if err != nil && err != errNotValid {
				err = fmt.Errorf("%s %w", what, err)
			}
			return list, err
		},
		func(list []etcdapi.ListenURL) string { return strings.Join(urlTexts(list), ",") }}
}

// urlValue takes exactly one URL.
func urlValue(p *etcdapi.ListenURL) pflag.Value {
	return &value[etcdapi.ListenURL]{p, "url", validEndpoint,
		func(s string) (etcdapi.ListenURL, error) {
			if n := len(splitList(s)); n != 1 {
				return etcdapi.ListenURL{}, fmt.Errorf("exactly one URL is needed, not %d", n)
			}
			return etcdapi.ParseListenURL(s)
		},
		etcdapi.ListenURL.String}
}

func urlTexts(list []etcdapi.ListenURL) []string {
	texts := make([]string, len(list))
	for i, u := range list {
		texts[i] = u.String()
	}
	return texts
}

func parseURLs(s string) ([]etcdapi.ListenURL, error) {
	var list []etcdapi.ListenURL
	for _, text := range splitList(s) {
		u, err := etcdapi.ParseListenURL(text)
		if err != nil {
			return nil, err
		}
		list = append(list, u)
	}
	if len(list) == 0 {
		return nil, errNotValid
	}
	return list, nil
}

// namesValue takes a comma-separated list of words that check takes.
func namesValue(p *[]string, valid string, check func(string) error) pflag.Value {
	return &value[[]string]{p, kindNames, valid,
		func(s string) ([]string, error) {
			list := splitList(s)
			if len(list) == 0 {
				return nil, errNotValid
			}
			for _, name := range list {
				if err := check(name); err != nil {
					return nil, err
				}
			}
			return list, nil
		},
		func(list []string) string { return strings.Join(list, ",") }}
}

// checkOrigin tells why a browser never sends such an origin.
func checkOrigin(s string) error {
	u, err := url.Parse(s)
	if s == "*" || err == nil && u.Scheme != "" && u.Host != "" && s == u.Scheme+"://"+u.Host {
		return nil
	}
	return fmt.Errorf("%q is no origin: it must be a scheme and a host, with a port or without, and nothing behind, such as https://example.org:8443", s)
}

// splitList splits at commas and drops blanks around items, and empty items.
func splitList(s string) []string {
	var list []string
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// exposed tells whether other machines can reach what listens at u.
func exposed(u etcdapi.ListenURL) bool {
	if isSocket(u) {
		return false
	}
	host, _, _ := net.SplitHostPort(u.Addr)
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}

func isSocket(u etcdapi.ListenURL) bool { return u.Scheme == "unix" || u.Scheme == "unixs" }

// advertised are the URLs to put into the member list when none are set: where
// clients are served, with this machine's name for "every address".
func advertised(listen []etcdapi.ListenURL) []etcdapi.ListenURL {
	list := make([]etcdapi.ListenURL, 0, len(listen))
	for _, u := range listen {
		host, port, err := net.SplitHostPort(u.Addr)
		if ip := net.ParseIP(host); !isSocket(u) && err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
			if name, err := os.Hostname(); err == nil {
				u.Addr = net.JoinHostPort(name, port)
			}
		}
		list = append(list, u)
	}
	return list
}
