package guard

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/node"
	"github.com/golang-jwt/jwt/v4"
	"github.com/stretchr/testify/require"
)

var secret = []byte(strings.Repeat("k", 32))

func sign(t *testing.T, method jwt.SigningMethod, key any, claims jwt.MapClaims) string {
	t.Helper()
	text, err := jwt.NewWithClaims(method, claims).SignedString(key)
	require.NoError(t, err)
	return text
}

// Each request passes, or is refused with the same status, as with geth's checks.
func TestAsGeth(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("an answer ", 1000))
	})
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	good := sign(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"iat": at(0)})
	tokens := map[string]string{
		"none": "", "good": "Bearer " + good, "lower case": "bearer " + good, "two spaces": "Bearer  " + good, "no scheme": good, "other scheme": "Basic " + good,
		"empty": "Bearer ", "text": "Bearer x.y.z",
		"old":      "Bearer " + sign(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"iat": at(-70 * time.Second)}),
		"future":   "Bearer " + sign(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"iat": at(70 * time.Second)}),
		"drift":    "Bearer " + sign(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"iat": at(30 * time.Second)}),
		"no time":  "Bearer " + sign(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{}),
		"expired":  "Bearer " + sign(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"iat": at(0), "exp": at(-time.Second)}),
		"expires":  "Bearer " + sign(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"iat": at(0), "exp": at(time.Hour)}),
		"HS512":    "Bearer " + sign(t, jwt.SigningMethodHS512, secret, jwt.MapClaims{"iat": at(0)}),
		"unsigned": "Bearer " + sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, jwt.MapClaims{"iat": at(0)}),
		"other":    "Bearer " + sign(t, jwt.SigningMethodHS256, make([]byte, 32), jwt.MapClaims{"iat": at(0)}),
	}
	for _, names := range [][]string{nil, {"localhost"}, {"A.example", "b.example"}, {"*"}} {
		for _, origins := range [][]string{nil, {"https://wallet.example"}, {"*"}} {
			for _, key := range [][]byte{nil, secret} {
				mine := Hosts(names, Origins(origins, answer))
				if key != nil {
					mine = Tokens(key, mine)
				}
				mine = Compressed(mine)
				geths := node.NewHTTPHandlerStack(answer, origins, names, key, false)
				for _, host := range []string{"", "localhost", "LOCALHOST:8545", "a.example:1", "b.example", "evil.example", "127.0.0.1", "[::1]:8545", "::1", "a:b:c", "192.0.2.1:1"} {
					for _, origin := range []string{"", "https://wallet.example", "https://evil.example"} {
						for name, token := range tokens {
							for _, accepts := range []string{"", "gzip"} {
								ask := func(h http.Handler) *httptest.ResponseRecorder {
									r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
									r.Host = host
									for header, value := range map[string]string{"Origin": origin, "Authorization": token, "Accept-Encoding": accepts} {
										if value != "" {
											r.Header.Set(header, value)
										}
									}
									w := httptest.NewRecorder()
									h.ServeHTTP(w, r)
									return w
								}
								have, want := ask(mine), ask(geths)
								require.Equal(t, want.Code, have.Code, "%v %v host %q, origin %q, token %s", names, origins, host, origin, name)
								require.Equal(t, want.Header().Get("Access-Control-Allow-Origin"), have.Header().Get("Access-Control-Allow-Origin"))
								if want.Code == http.StatusOK {
									require.Equal(t, want.Header().Get("Content-Encoding"), have.Header().Get("Content-Encoding"))
								}
							}
						}
					}
				}
			}
		}
	}
}
