module github.com/jamq/jamq/submit/jamnps

go 1.25.0

replace github.com/jamq/jamq => ../..

require (
	github.com/ethereum/go-ethereum v1.15.11
	github.com/jamq/jamq v0.0.0
	github.com/quic-go/quic-go v0.59.1
	github.com/stretchr/testify v1.11.1
	golang.org/x/crypto v0.41.0
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/holiman/uint256 v1.3.2 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	golang.org/x/net v0.43.0 // indirect
	golang.org/x/sys v0.35.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
