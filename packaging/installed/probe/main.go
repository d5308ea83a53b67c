// Command probe stands in for tarn in the sandbox of a unit, and tries what nobody there
// should be able to do.
//
//	probe serve    as a service: everything that is forbidden must fail, the rest succeed
//	probe control  as root: everything must succeed, else the trial says nothing
//	probe host     another service of the machine: it listens and answers nothing, until killed
//
// Any first argument other than control and host is that of the service.
package main

import (
	"fmt"
	"net"
	"os"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "host" {
		if err := host(); err != nil {
			fmt.Fprintln(os.Stderr, "probe:", err)
			os.Exit(1)
		}
		return
	}
	control := len(os.Args) > 1 && os.Args[1] == "control"
	wrong := 0
	for _, t := range trials {
		err := t.try()
		verdict := "ok"
		if (err == nil) == t.forbidden && !control || err != nil && control {
			verdict = "WRONG"
			wrong++
		}
		fmt.Printf("%s: %s: %s\n", verdict, t.what, result(err))
	}
	fmt.Printf("%d trials, %d wrong\n", len(trials), wrong)
	if wrong > 0 {
		os.Exit(1)
	}
}

func result(err error) string {
	if err != nil {
		return "fails: " + err.Error()
	}
	return "succeeds"
}

// host listens, and says so when it does.
func host() error {
	failed := make(chan error)
	for _, address := range []string{listenTCP, elsewhere} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					failed <- err
					return
				}
				conn.Close()
			}
		}()
	}
	fmt.Println("listening")
	return <-failed
}
