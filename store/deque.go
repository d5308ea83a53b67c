package store

const dequeChunk = 1024

// deque is a queue with random access that never moves its elements: it grows
// and shrinks by chunks, so appending to a long one costs no copy.
type deque[T any] struct {
	chunks []*[dequeChunk]T
	head   int // position of the first element in chunks[0]
	n      int
}

func (d *deque[T]) len() int { return d.n }

func (d *deque[T]) at(i int) *T {
	i += d.head
	return &d.chunks[i/dequeChunk][i%dequeChunk]
}

func (d *deque[T]) push(v T) {
	i := d.head + d.n
	if i/dequeChunk == len(d.chunks) {
		d.chunks = append(d.chunks, new([dequeChunk]T))
	}
	d.chunks[i/dequeChunk][i%dequeChunk] = v
	d.n++
}

// popBack removes the last element.
func (d *deque[T]) popBack() {
	var zero T
	*d.at(d.n - 1) = zero
	d.n--
}

// dropFront removes the first n elements.
func (d *deque[T]) dropFront(n int) {
	var zero T
	for i := range n {
		*d.at(i) = zero
	}
	d.head += n
	d.n -= n
	if k := d.head / dequeChunk; k > 0 {
		d.chunks = append([]*[dequeChunk]T(nil), d.chunks[k:]...)
		d.head %= dequeChunk
	}
}

// search returns the smallest i for which ok(at(i)) holds, and len if there is
// none; ok must be false for a prefix and true for the rest.
func (d *deque[T]) search(ok func(*T) bool) int {
	lo, hi := 0, d.n
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if ok(d.at(mid)) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}
