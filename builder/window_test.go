package builder_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
)

func TestWindowDefaults(t *testing.T) {
	w := builder.DefaultWindow(jamq.Tiny())
	require.Equal(t, 3*time.Second, w.Opens)
	require.Equal(t, time.Second, w.Closes)
	slot := w.Clock.Start(1000)
	at := func(d time.Duration) time.Time { return slot.Add(d) }
	for _, c := range []struct {
		after time.Duration
		open  bool
		next  time.Duration
	}{
		{0, false, 3 * time.Second},
		{3*time.Second - 1, false, 3 * time.Second},
		{3 * time.Second, true, 3 * time.Second},
		{5*time.Second - 1, true, 5*time.Second - 1},
		{5 * time.Second, false, 9 * time.Second},
	} {
		require.Equal(t, c.open, w.Open(at(c.after)), c.after)
		require.Equal(t, at(c.next), w.NextOpen(at(c.after)), c.after)
	}
}

func TestWindowNextOpenIsOpenAndFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slot := rapid.Int64Range(3, 10_000).Draw(t, "slot")
		closes := rapid.Int64Range(0, slot-1).Draw(t, "closes")
		opens := rapid.Int64Range(closes+1, slot).Draw(t, "opens")
		w := builder.Window{
			Clock:  jamq.SlotClock{Era: jamq.CommonEra(), SlotDuration: time.Duration(slot) * time.Millisecond},
			Opens:  time.Duration(opens) * time.Millisecond,
			Closes: time.Duration(closes) * time.Millisecond,
			Skew:   time.Duration(rapid.Int64Range(1-slot, slot-1).Draw(t, "skew")) * time.Millisecond,
		}
		if err := w.Validate(); err != nil {
			t.Fatal(err)
		}
		now := jamq.CommonEra().Add(time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "now")))
		next := w.NextOpen(now)
		if next.Before(now) || !w.Open(next) {
			t.Fatalf("NextOpen(%v) = %v, open %v", now, next, w.Open(next))
		}
		chains := w
		chains.Skew = 0
		if !chains.Open(next.Add(-w.Skew)) {
			t.Fatalf("at %v the window is not open by the chain's clock", next)
		}
		if next.After(now) && w.Open(next.Add(-1)) {
			t.Fatalf("the window was open before %v", next)
		}
	})
}

func TestWindowValidate(t *testing.T) {
	good := builder.DefaultWindow(jamq.Full())
	require.NoError(t, good.Validate())
	for _, change := range []func(*builder.Window){
		func(w *builder.Window) { w.Opens = w.Closes },
		func(w *builder.Window) { w.Closes = -1 },
		func(w *builder.Window) { w.Opens = 7 * time.Second },
		func(w *builder.Window) { w.Clock = jamq.SlotClock{} },
		func(w *builder.Window) { w.Skew = 6 * time.Second },
		func(w *builder.Window) { w.Skew = -6 * time.Second },
	} {
		w := good
		change(&w)
		require.ErrorIs(t, w.Validate(), builder.ErrInvalidConfig)
	}
}
