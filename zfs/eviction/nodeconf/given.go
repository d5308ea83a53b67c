package nodeconf

import "fmt"

// Place is a kind of place that settings of a unit or of k3s come from.
type Place string

const (
	PlaceDefault Place = "default"
	PlaceEnv     Place = "environment"  // of a unit
	PlaceFile    Place = "file"         // k3s' configuration file or one of its drop-ins
	PlaceCommand Place = "command line" // of a unit
	PlaceByHand  Place = "by hand"      // told by whoever asks
)

// Given is a value and where it is given.
type Given struct {
	Value string `json:"value"`
	Place Place  `json:"place"`
	File  string `json:"file,omitempty"` // absolute; "" for what is in no file
}

// Where is the place for people.
func (g Given) Where() string {
	switch {
	case g.Place == "":
		return "unknown"
	case g.File == "" || g.Place == PlaceFile:
		return firstOf(g.File, string(g.Place))
	}
	return fmt.Sprintf("%s in %s", g.Place, g.File)
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// Arg is an argument of a command line: --Name=Value.
type Arg struct {
	Name string `json:"name"` // without dashes
	Given
}
