package jip2server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jamq/jamq"
)

// Deviations are the ways in which a node differs from the text of JIP-2. Start
// from [Strict], which has none.
type Deviations struct {
	// Missing are methods that the node does not have. UnknownCode is the code
	// of its answer to them: -32601 by the text, 0 on some nodes.
	Missing     []string
	UnknownCode int
	// Rejected are methods that the node declares without parameters and does
	// not implement. It answers -32602 to a call with parameters, and 0 to
	// others.
	Rejected []string
	// Stubs maps methods to the result that the node returns for every call,
	// because it does not implement them yet. Such a call changes nothing.
	Stubs map[string]any
	// KeepStates, if positive, is the number of blocks below the best one whose
	// state the node has, for package statuses and service values. 0 means all.
	KeepStates int
	// PrunedCode is the code of the node's answer about a state that it does
	// not have: 1 by the text, 0 on some nodes.
	PrunedCode int
	// StuckAtReported lets package statuses never change from Reported to
	// Ready.
	StuckAtReported bool
	// FinalIsBest makes every block final at once, because the node has no
	// finality. After a reorg its finalized blocks then contradict each other.
	FinalIsBest bool
	// Notify changes the envelope of notifications.
	Notify Notify
}

// Notify is the envelope in which a node sends the updates of a subscription.
type Notify struct {
	// IDField is the name of the subscription's id in the params. "" means
	// "subscription", as in the text.
	IDField string
	// TextIDs makes ids of subscriptions texts in hexadecimal, such as "0x1f",
	// instead of numbers.
	TextIDs bool
	// MethodIsID sends the id, as a text, in the place of the method.
	MethodIsID bool
	// ValuesOnly sends the value of a chain subscription without the block
	// after which it holds.
	ValuesOnly bool
	// Batches sends each notification in a JSON array.
	Batches bool
}

// Profile is the behaviour of one kind of node, under a name, so that a client
// can be tested against all kinds.
type Profile struct {
	// Name is short and has no spaces. About says in one sentence which nodes
	// behave so.
	Name, About string
	// Deviations are the differences from the text.
	Deviations Deviations
	// Lacks are the methods, in alphabetical order, that a builder's feed needs
	// and the node does not have, or answers without knowledge. If it is empty,
	// the node suffices for a builder.
	Lacks []string
}

// Strict returns the deviations of a node that follows the text: none.
func Strict() Deviations {
	return Deviations{UnknownCode: codeMethod, PrunedCode: codeUnavailable}
}

// Profiles returns all profiles, the strict one first. The facts about
// typeberry are from a running node, and those about New-JAMneration from its
// public source, both as of November 2026.
func Profiles() []Profile {
	return []Profile{strictProfile(), tolerableProfile(), typeberryProfile(), jamnerationProfile()}
}

func strictProfile() Profile {
	return Profile{Name: "strict", About: "a node that follows the text of JIP-2", Deviations: Strict()}
}

// tolerableProfile collects what nodes do that a builder can live with.
func tolerableProfile() Profile {
	d := Strict()
	d.Missing, d.UnknownCode = append(youngMethods(), "submitWorkPackageBundle", "syncState", "subscribeSyncStatus"), codeOther
	d.KeepStates, d.PrunedCode, d.StuckAtReported = 4, codeOther, true
	d.Notify = Notify{IDField: "subscriptionId", TextIDs: true, Batches: true}
	return Profile{
		Name: "tolerable", About: "all deviations at once that leave a builder the evidence it needs",
		Deviations: d,
	}
}

// typeberryProfile is a node whose RPC reads its database.
func typeberryProfile() Profile {
	d := Strict()
	d.Missing = youngMethods()
	d.Rejected = []string{
		"beefyRoot", "workPackageStatus", "subscribeWorkPackageStatus", "submitWorkPackage", "submitWorkPackageBundle", "submitPreimage",
		"syncState", "subscribeSyncStatus", "workReport", "fetchSegments", "fetchWorkPackageSegments",
	}
	d.PrunedCode, d.FinalIsBest = codeOther, true
	d.Notify = Notify{IDField: "subscriptionId", TextIDs: true, ValuesOnly: true}
	return Profile{
		Name: "typeberry", About: "the TypeScript node typeberry, version 0.11", Deviations: d,
		Lacks: []string{"beefyRoot", "workPackageStatus"},
	}
}

// jamnerationProfile is a node whose RPC is a frame: it answers every method, and most answers are
// constants.
func jamnerationProfile() Profile {
	d := Strict()
	d.Missing = youngMethods()
	d.Stubs = map[string]any{
		"workPackageStatus": object{"Failed": "not implemented"}, "beefyRoot": text([32]byte{}), "serviceValue": "",
		"submitWorkPackage": true, "submitWorkPackageBundle": true,
	}
	d.Notify = Notify{MethodIsID: true}
	return Profile{
		Name: "jamneration", About: "the Go node New-JAMneration, whose RPC has stubs", Deviations: d,
		Lacks: []string{"beefyRoot", "workPackageStatus"},
	}
}

// deviates returns the answer to a call that the node lacks, rejects or has as a
// stub.
func (d *Deviations) deviates(c *call) (result any, e *Error, done bool) {
	if stub, ok := d.Stubs[c.Method]; ok {
		return stub, nil, true
	}
	switch {
	case slices.Contains(d.Missing, c.Method):
		return nil, d.unknown(c.Method), true
	case slices.Contains(d.Rejected, c.Method) && len(c.Params) > 0:
		return nil, &Error{Code: codeParams, Message: "invalid params: expected none"}, true
	case slices.Contains(d.Rejected, c.Method):
		return nil, &Error{Code: codeOther, Message: "method not implemented"}, true
	}
	return nil, nil, false
}

// unknown is the answer to a call of a method that the node does not have.
func (d *Deviations) unknown(method string) *Error {
	return &Error{Code: d.UnknownCode, Message: "method not found: " + method}
}

// finalized returns the block that the node calls final.
func (s *Server) finalized() jamq.Block {
	if s.cfg.FinalIsBest {
		return s.chain.Best()
	}
	return s.chain.Finalized()
}

// envelope returns a notification. params has its result or its error.
func (n *Notify) envelope(id any, method string, params object) any {
	field := "subscription"
	if n.IDField != "" {
		field = n.IDField
	}
	params[field] = id
	if n.MethodIsID {
		method = fmt.Sprint(id)
	}
	message := object{"jsonrpc": "2.0", "method": method, "params": params}
	if n.Batches {
		return []object{message}
	}
	return message
}

// id returns the id of a subscription as the node writes it.
func (n *Notify) id(id uint64) any {
	if n.TextIDs {
		return "0x" + strconv.FormatUint(id, 16)
	}
	return id
}

// readID reads the parameter of a method that ends a subscription.
func (n *Notify) readID(a *args) (id uint64) {
	if !n.TextIDs {
		return next[uint64](a)
	}
	given := next[string](a)
	if a.err == nil {
		id, a.err = strconv.ParseUint(strings.TrimPrefix(given, "0x"), 16, 64)
	}
	return id
}
