// Package guard checks HTTP requests before a node serves them: the origin of a script,
// the host name, and the token of an administrator. The checks give the same results as
// those of geth. This package does not use geth's own package node, which would bring a
// database and a peer-to-peer network with it.
package guard

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v4"
	"github.com/klauspost/compress/gzhttp"
	"github.com/rs/cors"
)

// Origins lets scripts on web pages of the given origins read the answers of next. "*"
// allows all origins. If origins is empty, only pages of the node itself can read the
// answers.
func Origins(origins []string, next http.Handler) http.Handler {
	if len(origins) == 0 {
		return next
	}
	return cors.New(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: []string{http.MethodGet, http.MethodPost},
		AllowedHeaders: []string{"*"},
		MaxAge:         int((10 * time.Minute).Seconds()),
	}).Handler(next)
}

// Hosts refuses requests for a host name that is not in names. Without this check, a
// web site could bind its own name to the node's address, and call the node from a
// visitor's browser. "*" allows any name. A request for an IP address, or without a
// host, always passes.
func Hosts(names []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		named := func(name string) bool { return name == "*" || strings.EqualFold(name, host) }
		if host != "" && net.ParseIP(host) == nil && !slices.ContainsFunc(names, named) {
			http.Error(w, "invalid host specified", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// tokenAge is the maximum difference between the time in a token and the node's
// clock. The value comes from the authentication specification of the Engine API.
const tokenAge = time.Minute

// Tokens refuses requests without a valid token. A valid token is a JSON Web Token that
// was signed with HMAC-SHA256 and the given secret, and issued less than a minute ago.
func Tokens(secret []byte, next http.Handler) http.Handler {
	key := func(*jwt.Token) (any, error) { return secret, nil }
	// The library would refuse any token from the future, which is too strict: the clocks
	// of two machines differ. The time is therefore checked below.
	parser := jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithoutClaimsValidation())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var claims jwt.RegisteredClaims
		if _, err := parser.ParseWithClaims(bearer(r), &claims, key); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		now := time.Now()
		switch {
		case claims.IssuedAt == nil:
			http.Error(w, "missing issued-at", http.StatusUnauthorized)
		case now.Sub(claims.IssuedAt.Time).Abs() > tokenAge:
			http.Error(w, "token issued more than a minute ago, or in the future", http.StatusUnauthorized)
		case !claims.VerifyExpiresAt(now, false):
			http.Error(w, "token is expired", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// Auth returns a function that adds a token to the header of a request. The handler
// that [Tokens] returns for the same secret accepts this token.
func Auth(secret []byte) func(http.Header) error {
	return func(h http.Header) error {
		claims := jwt.RegisteredClaims{IssuedAt: jwt.NewNumericDate(time.Now())}
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(secret)
		h.Set("Authorization", "Bearer "+token)
		return err
	}
}

// bearer returns the token in the header of a request, or "".
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return token
}

// Compressed compresses the answers of next for clients that accept compression. It
// leaves answers with the header Transfer-Encoding: identity alone, because
// go-ethereum's package rpc sets this header on the answer to a call that takes too
// long, which must be sent at once.
func Compressed(next http.Handler) http.Handler {
	return gzhttp.GzipHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&identity{ResponseWriter: w}, r)
	}))
}

// identity is a writer for [Compressed] that watches for Transfer-Encoding: identity.
type identity struct {
	http.ResponseWriter
	began bool
}

// begin checks whether the answer must not be compressed, and tells gzhttp so.
func (w *identity) begin() {
	if !w.began && w.Header().Get("Transfer-Encoding") == "identity" {
		w.Header().Set(gzhttp.HeaderNoCompression, "identity")
	}
	w.began = true
}

// WriteHeader implements http.ResponseWriter.
func (w *identity) WriteHeader(status int) {
	w.begin()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (w *identity) Write(b []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(b)
}

// Flush implements http.Flusher.
func (w *identity) Flush() {
	w.begin()
	_ = http.NewResponseController(w.ResponseWriter).Flush() // some writers cannot
}

// Unwrap returns the writer below, for http.ResponseController.
func (w *identity) Unwrap() http.ResponseWriter { return w.ResponseWriter }
