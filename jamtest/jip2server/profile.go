package jip2server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jamq/jamq"
)

// Deviations are the ways in which a node differs from the text of JIP-2. [Strict]
// returns a value without deviations, to start from.
type Deviations struct {
	// Missing lists methods that the node does not have. UnknownCode is the error code in
	// its answer to calls of these methods: -32601 in the text of JIP-2, and 0 on some
	// nodes.
	Missing     []string
	UnknownCode int
	// Rejected lists methods that the node declares without parameters and does not
	// implement. The error code in its answer is -32602 if the call has parameters, and 0
	// otherwise.
	Rejected []string
	// Stubs maps methods that the node does not implement yet to the result that it returns
	// for every call. Such a call changes nothing.
	Stubs map[string]any
	// KeepStates, if positive, is the number of newest blocks, including the best one,
	// whose state the node has. It answers calls about older states with PrunedCode. 0
	// means that the node has all states.
	KeepStates int
	// PrunedCode is the error code in the node's answer about a state that it has dropped:
	// 1 in the text of JIP-2, and 0 on some nodes.
	PrunedCode int
	// StuckAtReported keeps package statuses at Reported when they should change to
	// Ready.
	StuckAtReported bool
	// FinalIsBest makes every best block final at once, as on a node without finality.
	// After a reorg, such a node's finalized blocks contradict each other.
	FinalIsBest bool
	// Notify changes the format of notifications.
	Notify Notify
}

// Notify describes the format in which a node sends the updates of a subscription. The
// zero value is the format of JIP-2.
type Notify struct {
	// IDField is the name of the parameter that contains the subscription's id. "" means
	// "subscription", as in the text of JIP-2.
	IDField string
	// TextIDs makes the ids of subscriptions hexadecimal strings, such as "0x1f",
	// instead of numbers.
	TextIDs bool
	// MethodIsID makes the node send the subscription's id, as a string, in place of the
	// name of the method.
	MethodIsID bool
	// ValuesOnly makes subscriptions to the state send only the value, without its block.
	ValuesOnly bool
	// Batches sends each notification in a JSON array, like a batch of one.
	Batches bool
}

// Profile describes how one kind of node behaves, so that a client can be tested
// against every kind.
type Profile struct {
	// Name is a short name without spaces, such as "strict". About describes in one
	// sentence which nodes behave in this way.
	Name, About string
	// Deviations are the differences from the text.
	Deviations Deviations
	// Lacks lists, in alphabetical order, the methods that a builder's feed needs but that
	// the node does not have or answers without real data. If the list is empty, a builder
	// can use the node.
	Lacks []string
}

// Strict returns the deviations of a node that follows the text: none.
func Strict() Deviations {
	return Deviations{UnknownCode: codeMethod, PrunedCode: codeUnavailable}
}

// Profiles returns all profiles, the strict one first. The facts about typeberry were
// observed on a running node, and those about New-JAMneration are from its public
// source. Both are as of November 2026.
func Profiles() []Profile {
	return []Profile{strictProfile(), tolerableProfile(), typeberryProfile(), jamnerationProfile()}
}

func strictProfile() Profile {
	return Profile{Name: "strict", About: "a node that follows the text of JIP-2", Deviations: Strict()}
}

// tolerableProfile combines all deviations that a builder can cope with.
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

// typeberryProfile describes typeberry, a node whose RPC only reads its database.
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

// jamnerationProfile describes New-JAMneration, a node that answers several methods
// with constants, because they are only stubs.
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

// deviates returns the node's answer to a call of a method that it lacks, rejects or
// has only as a stub. If done is false, the method works as usual.
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

// unknown returns the node's answer to a call of a method that it does not have.
func (d *Deviations) unknown(method string) *Error {
	return &Error{Code: d.UnknownCode, Message: "method not found: " + method}
}

// finalized returns the block that the node reports as final; see
// Deviations.FinalIsBest.
func (s *Server) finalized() jamq.Block {
	if s.cfg.FinalIsBest {
		return s.chain.Best()
	}
	return s.chain.Finalized()
}

// envelope returns a notification in the node's format. params must already contain the
// result or the error.
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

// id returns the id of a subscription in the format of the node.
func (n *Notify) id(id uint64) any {
	if n.TextIDs {
		return "0x" + strconv.FormatUint(id, 16)
	}
	return id
}

// readID reads a subscription's id from the parameters of a call to unsubscribe.
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
