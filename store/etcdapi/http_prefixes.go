package etcdapi

import (
	"encoding/json"
	"net/http"

	"github.com/tarn-kv/tarn/store"
)

// PrefixesPath is the page of a client listener that has a PrefixesPage in JSON.
const PrefixesPath = "/debug/prefixes"

// PrefixesPage is what there is of each prefix of the keys, in the order of the prefixes.
type PrefixesPage struct {
	Prefixes []store.PrefixTotals `json:"prefixes"`
}

// servePrefixes answers from sums, however many keys there are and also when no write is taken any more. Names
// of keys are for those who may read them: with access control the page is for the role root.
func (s *Server) servePrefixes(w http.ResponseWriter, r *http.Request) {
	if err := s.adminPage(r); err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(PrefixesPage{Prefixes: append([]store.PrefixTotals{}, s.store.Prefixes()...)})
}
