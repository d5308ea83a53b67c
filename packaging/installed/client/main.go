// Command client is the clients of the tests of the installed system.
//
//	client load  [flag...]  read, write and watch until SIGTERM, then check what was seen
//	client check [flag...]  compare what the server has with what an earlier load was told
//	client get   [flag...] KEY   one read; says when it connected and when it was answered
//	client certificate DIR  make a new certificate for the server there
//	client serial [flag...]  the serial number of the certificate that the server shows
//
// Its exit status is 0 if nothing is wrong, 1 if something is, and 2 for a wrong command line.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// settings are the flags of all three commands.
type settings struct {
	endpoints                 string // the clients are dealt out to them in turn
	journal                   string // file with what was acknowledged
	writers, readers, watches int
	pause                     time.Duration // of a client between two requests
	limit                     time.Duration // of one request, and of the check at the end
	ready                     string        // file that is made when all clients have had an answer
	trusted                   string        // file with the certificates of a server with https
	uncut                     bool          // a request without an answer is an error
	killed                    bool          // a connection that is cut off is none
}

func main() {
	var o settings
	if len(os.Args) < 2 {
		usage()
	}
	command := os.Args[1]
	flags := flag.NewFlagSet("client "+command, flag.ExitOnError)
	flags.StringVar(&o.endpoints, "endpoints", "http://127.0.0.1:2379,unix:/run/tarn/tarn.sock", "where the server is, separated by commas")
	flags.StringVar(&o.journal, "journal", "acknowledged", "file with the writes that were acknowledged; a load adds to it")
	flags.IntVar(&o.writers, "writers", 8, "clients that write")
	flags.IntVar(&o.readers, "readers", 4, "clients that read")
	flags.IntVar(&o.watches, "watches", 100, "watches")
	flags.DurationVar(&o.pause, "pause", 20*time.Millisecond, "pause of a client between two requests")
	flags.DurationVar(&o.limit, "limit", 2*time.Minute, "time-out of a request")
	flags.StringVar(&o.ready, "ready", "", "file to make when every client and watch has had an answer")
	flags.StringVar(&o.trusted, "trusted", "", "file with the certificates that a server may show")
	flags.BoolVar(&o.uncut, "uncut", false, "each request must have its answer: the server is not restarted")
	flags.BoolVar(&o.killed, "killed", false, "connections can be cut off: the server is killed")
	flags.Parse(os.Args[2:])

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var err error
	switch command {
	case "load":
		err = runLoad(ctx, o)
	case "check":
		err = runCheck(ctx, o)
	case "get":
		if flags.NArg() != 1 {
			usage()
		}
		err = runGet(ctx, o, flags.Arg(0))
	case "certificate":
		if flags.NArg() != 1 {
			usage()
		}
		err = runCertificate(flags.Arg(0))
	case "serial":
		err = runSerial(ctx, o)
	default:
		usage()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "client %s: %v\n", command, err)
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: client load|check|get|certificate|serial [flag...]; client load -help lists the flags")
	os.Exit(2)
}

// endpoint is the one for client number n.
func (o *settings) endpoint(n int) string {
	all := strings.Split(o.endpoints, ",")
	return all[n%len(all)]
}
