package tools

import "testing"

func TestWatchForms(t *testing.T) {
	s := start(t)
	s.ctl("put", "w/a", "1") // revision 2
	s.ctl("put", "w/b", "2") // revision 3
	s.ctl("del", "w/a")      // revision 4
	s.ctl("put", "x", "3")   // revision 5

	past := s.follow("watch", "--prefix", "w/", "--rev=2", "--prev-kv")
	for _, line := range []string{"PUT", "w/a", "1", "PUT", "w/b", "2", "DELETE", "w/a", "1"} {
		past.wait(line)
	}
	s.ctl("put", "w/c", "now")
	past.wait("w/c")
	past.wait("now")

	between := s.follow("watch", "w/b", "w/d", "--rev=2")
	between.wait("w/b")
	between.wait("w/c")

	json := s.follow("watch", "x", "--rev=5", "-w", "json")
	json.wait(`"key":"eA=="`)

	s.ctl("compaction", "5")
	s.refused("required revision has been compacted", "watch", "w/a", "--rev=2")
}

// A command gets the event in its environment.
func TestWatchExec(t *testing.T) {
	s := start(t)
	s.ctl("put", "key", "some value")
	f := s.follow("watch", "key", "--rev=2", "--", "sh", "-c",
		"echo at $ETCD_WATCH_REVISION: $ETCD_WATCH_EVENT_TYPE $ETCD_WATCH_KEY $ETCD_WATCH_VALUE")
	f.wait(`at 2: "PUT" "key" "some value"`)
}

func TestWatchInteractive(t *testing.T) {
	s := start(t)
	s.ctl("put", "a", "1")
	f := s.follow("watch", "-i", "-w", "fields")
	f.say("watch --rev=2 a")
	f.wait(`"Key" : "a"`)
	f.say("watch --prefix b")
	f.say("progress")
	f.wait("progress notify: 2")
	s.ctl("put", "b1", "x")
	f.wait(`"Key" : "b1"`)
}
