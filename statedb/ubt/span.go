package ubt

// span is a range of a stem's 256 values that has a hash: the values below one node of the
// binary tree over all 256. Its length is therefore a power of two, and its first index is
// a multiple of the length.
type span struct {
	first  uint8
	length uint16
}

var allValues = span{0, 256}

func (s span) halves() (left, right span) {
	half := s.length / 2
	return span{s.first, half}, span{s.first + uint8(half), half}
}

// anyOf reports whether the span contains an index that is in the set.
func (s span) anyOf(members *set) bool {
	word := s.first / 64
	if s.length <= 64 {
		return members[word]>>(s.first%64)<<(64-s.length) != 0
	}
	for _, bits := range members[word : uint16(word)+s.length/64] {
		if bits != 0 {
			return true
		}
	}
	return false
}
