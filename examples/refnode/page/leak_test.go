package page_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jamq/jamq/internal/wait"
)

// A real node with readers leaves no goroutine behind.
func TestNothingIsLeftBehind(t *testing.T) {
	http.DefaultClient.CloseIdleConnections()
	before := goleak.IgnoreCurrent()
	s := serve(t, "127.0.0.1:0", 50*time.Millisecond, nil)
	client := &http.Client{Transport: &http.Transport{}}
	var bodies []io.ReadCloser
	for range 5 {
		response, err := client.Get(s.url + "/live")
		require.NoError(t, err)
		bodies = append(bodies, response.Body)
		require.Len(t, next(t, bufio.NewReader(response.Body)), 9)
	}
	s.send(3)
	s.stop()
	for _, body := range bodies {
		_, err := io.Copy(io.Discard, body)
		require.True(t, err == nil || errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "reset"), "%v", err)
		body.Close()
	}
	client.CloseIdleConnections()
	wait.Until(t, func() bool { return goleak.Find(before) == nil }, "no goroutine is left")
}
