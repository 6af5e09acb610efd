package eoa

import (
	"reflect"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// fill gives every field that a value has, at any depth, another value than zero, each its own.
func fill(v reflect.Value, n *byte) {
	*n++
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = time.Unix(int64(*n), int64(*n)).UTC()
		return
	case *uint256.Int:
		x.SetUint64(uint64(*n))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.String:
		v.SetString(string(rune('a' + *n%26)))
	case reflect.Bool:
		v.SetBool(true)
	default:
		if v.CanInt() {
			v.SetInt(int64(*n))
		} else {
			v.SetUint(uint64(*n))
		}
	}
}

// full returns a record with a value in every field. A new field that is not
// encoded fails the test.
func full() Record {
	var r Record
	var n byte
	fill(reflect.ValueOf(&r).Elem(), &n)
	r.State, r.Kind, r.Priority = Final, SetCode, -3
	return r
}

func TestRecordsKeepEverything(t *testing.T) {
	r := full()
	require.Equal(t, []any{r.State, r.Kind}, []any{Final, SetCode})
	r.Kind, r.Noop = Blob, true // blobs of two bytes are none
	for _, r := range []Record{r, {Request: Request{Key: "a"}, ID: 1}} {
		got, err := DecodeRecord(EncodeRecord(&r))
		require.NoError(t, err)
		require.Equal(t, r, got)
	}
	for i := range r.Attempts { // fields that are newer than version 2, and then 1
		r.Attempts[i].Refusals = 0
	}
	r.EndedAt = time.Time{}
	r.GasPrice, r.Contract, r.Logs = nil, nil, nil
	for version := byte(2); version > 0; version-- {
		old := coder{out: []byte{version}, version: version}
		old.record(&r)
		got, err := DecodeRecord(old.out)
		require.NoError(t, err, "version %d", version)
		require.Equal(t, r, got)
		r.Unused, r.Used = 0, 0
	}
	zone := time.FixedZone("", 3600)
	got, err := DecodeRecord(EncodeRecord(&Record{Request: Request{Key: "a"}, ID: 1, QueuedAt: time.Unix(5, 6).In(zone)}))
	require.NoError(t, err)
	require.Equal(t, time.Unix(5, 6).UTC(), got.QueuedAt)
}

// Bytes that are cut, or followed by others, or of another version are refused.
func TestMalformedRecords(t *testing.T) {
	r := full()
	r.Kind, r.Noop = Blob, true
	raw := EncodeRecord(&r)
	for cut := range raw {
		_, err := DecodeRecord(raw[:cut])
		require.ErrorIs(t, err, ErrMalformed, "cut to %d", cut)
	}
	_, err := DecodeRecord(append(raw, 0))
	require.ErrorIs(t, err, ErrMalformed)
	raw[0]++
	_, err = DecodeRecord(raw)
	require.ErrorIs(t, err, ErrMalformed)
	for name, r := range map[string]Record{
		"no id": {Request: Request{Key: "a"}}, "no key": {ID: 1}, "state": {Request: Request{Key: "a"}, ID: 1, State: Cancelled + 1},
		"no attempt": {Request: Request{Key: "a"}, ID: 1, State: Prepared}, "no blobs": {Request: Request{Key: "a", Kind: Blob}, ID: 1},
	} {
		_, err := DecodeRecord(EncodeRecord(&r))
		require.ErrorIs(t, err, ErrMalformed, name)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	to := common.Address{1}
	blob := Record{Request: Request{Key: "a", Kind: Blob, To: &to, Blobs: [][]byte{make([]byte, BlobSize)}, MaxBlobFee: uint256.NewInt(9)}, ID: 1, State: Prepared, Attempts: []Attempt{{Raw: []byte{3}}}}
	r := full()
	r.Blobs = nil
	for _, r := range []Record{blob, r, {Request: Request{Key: "a"}, ID: 1}} {
		f.Add(EncodeRecord(&r))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := DecodeRecord(raw)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		again, err := DecodeRecord(EncodeRecord(&r))
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}

func BenchmarkRecord(b *testing.B) {
	to := common.Address{1}
	r := Record{Request: Request{Key: "a key", To: &to, Data: make([]byte, 100)}, ID: 1, State: Broadcast, QueuedAt: time.Now(),
		Attempts: []Attempt{{Hash: common.Hash{1}, Raw: make([]byte, 220), SentAt: time.Now()}}}
	raw := EncodeRecord(&r)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			EncodeRecord(&r)
		}
		b.ReportMetric(float64(len(raw)), "bytes")
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := DecodeRecord(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
}
