package main

import (
	"encoding/json"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
)

// sendable is all that a send of a package needs. The queue keeps it as bytes.
type sendable struct {
	Context jamq.RefineContext
	Payload []byte
}

func encode(context jamq.RefineContext, payload []byte) []byte {
	raw, err := json.Marshal(sendable{context, payload})
	if err != nil {
		panic(err) // impossible for these types
	}
	return raw
}

func decode(raw []byte) (jamtest.Package, error) {
	var s sendable
	err := json.Unmarshal(raw, &s)
	return jamtest.NewPackage(service, s.Context, s.Payload), err
}
