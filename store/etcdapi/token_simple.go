package etcdapi

import (
	"container/list"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/tarn-kv/tarn/store/auth"
)

// simpleTokens are random words kept in memory (AUT-12). All live equally long after
// their last use, so the list of them in order of use is in order of expiry too.
type simpleTokens struct {
	ttl time.Duration

	mu     sync.Mutex
	byText map[string]*list.Element // of byUse
	byUse  list.List                // of *simpleToken, the next one to expire in front
	timer  *time.Timer              // for the one in front; nil if there is none
}

type simpleToken struct {
	text, user string
	expiry     time.Time
}

func newSimpleTokens(ttl time.Duration) *simpleTokens {
	return &simpleTokens{ttl: ttl, byText: make(map[string]*list.Element)}
}

const tokenLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// newTokenPrefix returns 16 random letters, more than 90 bits.
func newTokenPrefix() string {
	var out [16]byte
	var random [32]byte
	for n := 0; n < len(out); {
		rand.Read(random[:])
		for _, r := range random {
			// Larger values would make the first letters more likely.
			if i := int(r); i < 256/len(tokenLetters)*len(tokenLetters) && n < len(out) {
				out[n] = tokenLetters[i%len(tokenLetters)]
				n++
			}
		}
	}
	return string(out[:])
}

func (t *simpleTokens) assign(user string, _, index uint64) (string, error) {
	x := &simpleToken{text: fmt.Sprintf("%s.%d", newTokenPrefix(), index), user: user}
	t.mu.Lock()
	defer t.mu.Unlock()
	x.expiry = time.Now().Add(t.ttl)
	t.byText[x.text] = t.byUse.PushBack(x)
	t.arm()
	return x.text, nil
}

func (t *simpleTokens) lookup(text string, revision uint64) (auth.Caller, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.byText[text]
	if at == nil {
		return auth.Caller{}, false
	}
	x, now := at.Value.(*simpleToken), time.Now()
	if !now.Before(x.expiry) {
		return auth.Caller{}, false // the timer is about to drop it
	}
	x.expiry = now.Add(t.ttl)
	t.byUse.MoveToBack(at)
	return auth.Caller{User: x.user, Revision: revision}, true
}

func (t *simpleTokens) drop(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := t.byText[text]; at != nil {
		t.remove(at)
	}
}

func (t *simpleTokens) dropUser(user string) {
	t.dropIf(func(x *simpleToken) bool { return x.user == user })
}

func (t *simpleTokens) dropAll() { t.dropIf(func(*simpleToken) bool { return true }) }

func (t *simpleTokens) dropIf(match func(*simpleToken) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at := t.byUse.Front(); at != nil; {
		next := at.Next()
		if match(at.Value.(*simpleToken)) {
			t.remove(at)
		}
		at = next
	}
}

// remove takes a token away. mu is held.
func (t *simpleTokens) remove(at *list.Element) {
	delete(t.byText, t.byUse.Remove(at).(*simpleToken).text)
	if t.byUse.Len() == 0 && t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}

// arm sets the timer if none is. A token that was used since only makes it look again.
// mu is held.
func (t *simpleTokens) arm() {
	if front := t.byUse.Front(); front != nil && t.timer == nil {
		t.timer = time.AfterFunc(time.Until(front.Value.(*simpleToken).expiry), t.expire)
	}
}

func (t *simpleTokens) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = nil
	now := time.Now()
	for front := t.byUse.Front(); front != nil && !now.Before(front.Value.(*simpleToken).expiry); front = t.byUse.Front() {
		t.remove(front)
	}
	t.arm()
}
