package etcdapi

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// ping opens a connection, with a keepalive stream if wanted, sends n pings at
// once, and returns the GOAWAY that the server answered, or nil.
func ping(t *testing.T, addr string, stream bool, n int) *http2.GoAwayFrame {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(waitLimit))
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	fr := http2.NewFramer(conn, conn)
	if err := fr.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	if stream {
		if err := openStream(fr, addr); err != nil {
			t.Fatal(err)
		}
	}
	for range n {
		if err := fr.WritePing(false, [8]byte{1}); err != nil {
			break // the server has closed; its GOAWAY is in the buffer
		}
	}
	for acks := 0; acks < n; {
		f, err := fr.ReadFrame()
		if err != nil {
			t.Fatalf("after %d acks: %v", acks, err)
		}
		switch f := f.(type) {
		case *http2.GoAwayFrame:
			return f
		case *http2.PingFrame:
			if f.IsAck() {
				acks++
			}
		}
	}
	return nil
}

func openStream(fr *http2.Framer, addr string) error {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, f := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", "/etcdserverpb.Lease/LeaseKeepAlive"}, {":authority", addr},
		{"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		if err := enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			return err
		}
	}
	return fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
}

func TestKeepAliveEnforcement(t *testing.T) {
	wantGoAway := func(t *testing.T, f *http2.GoAwayFrame) {
		t.Helper()
		if f == nil || f.ErrCode != http2.ErrCodeEnhanceYourCalm || string(f.DebugData()) != "too_many_pings" {
			t.Errorf("got %v", f)
		}
	}
	t.Run("GRPC-6 default", func(t *testing.T) {
		_, addr := startServer(t, Config{})
		wantGoAway(t, ping(t, addr, true, 10))
	})
	t.Run("GRPC-6 at the rate allowed", func(t *testing.T) {
		_, addr := startServer(t, Config{KeepAliveMinTime: time.Nanosecond})
		if f := ping(t, addr, true, 10); f != nil {
			t.Errorf("got %v", f)
		}
	})
	t.Run("GRPC-6 without a stream", func(t *testing.T) {
		_, addr := startServer(t, Config{KeepAliveMinTime: time.Nanosecond})
		wantGoAway(t, ping(t, addr, false, 10))
	})
	t.Run("TOP-10 GRPC-7 defaults", func(t *testing.T) {
		c := Config{}.withDefaults()
		if c.KeepAliveMinTime != 5*time.Second || c.KeepAliveTime != 2*time.Hour || c.KeepAliveTimeout != 20*time.Second {
			t.Errorf("%v, %v, %v", c.KeepAliveMinTime, c.KeepAliveTime, c.KeepAliveTimeout)
		}
	})
}
