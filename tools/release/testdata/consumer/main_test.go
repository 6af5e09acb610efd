package main

import "testing"

func TestConsumer(t *testing.T) {
	if err := bundle(t.Context()); err != nil {
		t.Error(err)
	}
	if err := payment(t.Context()); err != nil {
		t.Error(err)
	}
}
