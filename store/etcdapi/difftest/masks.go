package difftest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Mask replaces the value of one field by what must be equal about it. Each has
// the reason why the plain values may differ between two correct servers.
type Mask struct {
	Message, Field string
	Reason         string
	apply          func(s *Session, parent protoreflect.Message, v protoreflect.Value) string
}

var masks = []Mask{
	{"ResponseHeader", "cluster_id", "derived from the peer URL; must be the server's own", maskID},
	{"ResponseHeader", "member_id", "derived from the peer URL; must be the server's own", maskID},
	{"ResponseHeader", "raft_term", "counts starts; must be 1 + number of starts", maskTerm},
	{"StatusResponse", "leader", "as member_id", maskID},
	{"StatusResponse", "raftTerm", "as raft_term", maskTerm},
	{"StatusResponse", "raftIndex", "counts log entries, of which each server has its own", maskPositive},
	{"StatusResponse", "raftAppliedIndex", "as raftIndex; must not be above it", maskApplied},
	{"StatusResponse", "dbSize", "depends on batching of commits", maskPositive},
	{"StatusResponse", "dbSizeInUse", "depends on batching of commits", maskPositive},
	{"StatusResponse", "errors", "blanks are unstable between builds", maskBlanks},
	{"Member", "ID", "as member_id", maskID},
	{"Member", "peerURLs", "every server has its own port", maskPresentList},
	{"Member", "clientURLs", "every server has its own port; must be the one it listens on", maskClientURLs},
	{"Member", "name", "tarn has no --name; must not be empty", maskPresent},
	{"AlarmMember", "memberID", "as member_id", maskID},
	{"HashResponse", "hash", "covers member and raft records, different by design (MNT-2)", maskPositive},
	{"AuthenticateResponse", "token", "random; must be 16 letters, a dot and a number (AUT-12), or have the same claims (AUT-13)", maskToken},
	{"LeaseTimeToLiveResponse", "TTL", "runs down while the test runs; full means at most 2 s (of 1,000 s and more: a quarter) less than granted", maskTTL},
	{"LeaseTimeToLiveResponse", "keys", "order unspecified (LSE-8)", maskSorted},
	{"LeaseLeasesResponse", "leases", "leases of equal age have no order (LSE-9)", maskSortedLeases},
}

func maskFor(message, field protoreflect.Name) (Mask, bool) {
	for _, m := range masks {
		if m.Message == string(message) && m.Field == string(field) {
			return m, true
		}
	}
	return Mask{}, false
}

func maskID(s *Session, _ protoreflect.Message, v protoreflect.Value) string {
	return s.ownIDs(strconv.FormatUint(v.Uint(), 10))
}

func maskTerm(s *Session, _ protoreflect.Message, v protoreflect.Value) string {
	return fmt.Sprintf("starts%+d", int(v.Uint())-s.Server.Boots)
}

func maskPositive(_ *Session, _ protoreflect.Message, v protoreflect.Value) string {
	if strings.HasPrefix(v.String(), "-") {
		return "negative"
	}
	return "positive"
}

func maskApplied(_ *Session, parent protoreflect.Message, v protoreflect.Value) string {
	index := parent.Get(parent.Descriptor().Fields().ByName("raftIndex")).Uint()
	if v.Uint() <= index {
		return "not above raftIndex"
	}
	return fmt.Sprintf("%d, but raftIndex %d", v.Uint(), index)
}

func maskBlanks(s *Session, _ protoreflect.Message, v protoreflect.Value) string {
	var texts []string
	for i := range v.List().Len() {
		texts = append(texts, strings.Join(strings.Fields(s.ownIDs(v.List().Get(i).String())), " "))
	}
	return strings.Join(texts, "; ")
}

func maskPresent(*Session, protoreflect.Message, protoreflect.Value) string { return "present" }

func maskPresentList(_ *Session, _ protoreflect.Message, v protoreflect.Value) string {
	return fmt.Sprintf("%d entries", v.List().Len())
}

func maskClientURLs(s *Session, _ protoreflect.Message, v protoreflect.Value) string {
	var urls []string
	for i := range v.List().Len() {
		urls = append(urls, strings.ReplaceAll(v.List().Get(i).String(), s.Server.Client, "<own address>"))
	}
	return strings.Join(urls, " ")
}

var simpleToken = regexp.MustCompile(`^[a-zA-Z]{16}\.\d+$`)

// jwtText is a JSON web token without its signature and the time when it ends.
func jwtText(parts []string) string {
	head, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err != nil {
		return err.Error()
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return err.Error()
	}
	var claims map[string]any
	if err := json.Unmarshal(body, &claims); err != nil {
		return err.Error()
	}
	_, ends := claims["exp"]
	delete(claims, "exp")
	return fmt.Sprintf("<token %s %v, it ends: %v>", head, claims, ends)
}

func maskToken(_ *Session, _ protoreflect.Message, v protoreflect.Value) string {
	if simpleToken.MatchString(v.String()) {
		return "<simple token>"
	}
	if parts := strings.Split(v.String(), "."); len(parts) == 3 {
		return jwtText(parts)
	}
	return v.String()
}

func maskTTL(_ *Session, parent protoreflect.Message, v protoreflect.Value) string {
	granted := parent.Get(parent.Descriptor().Fields().ByName("grantedTTL")).Int()
	slack := int64(2)
	if granted >= 1000 {
		slack = granted / 4 // longer than any run
	}
	if left := v.Int(); granted > 0 && left >= granted-slack && left <= granted+1 {
		return "full"
	}
	return strconv.FormatInt(v.Int(), 10)
}

func maskSorted(_ *Session, _ protoreflect.Message, v protoreflect.Value) string {
	var keys []string
	for i := range v.List().Len() {
		keys = append(keys, strconv.Quote(string(v.List().Get(i).Bytes())))
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

func maskSortedLeases(_ *Session, _ protoreflect.Message, v protoreflect.Value) string {
	var ids []int64
	for i := range v.List().Len() {
		id := v.List().Get(i).Message()
		ids = append(ids, id.Get(id.Descriptor().Fields().ByName("ID")).Int())
	}
	slices.Sort(ids)
	return fmt.Sprint(ids)
}
