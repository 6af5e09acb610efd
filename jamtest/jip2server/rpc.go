package jip2server

import "encoding/json"

// call is a JSON-RPC 2.0 request.
type call struct {
	ID     json.RawMessage // nil for a notification, which gets no answer
	Method string
	Params []json.RawMessage
}

// null is the id in an answer if the id of the request could not be read.
var null = json.RawMessage("null")

// decodeCall decodes a request with positional parameters, as JIP-2 uses for all
// methods. If decoding fails, the returned call still has the id for the error answer.
func decodeCall(raw []byte) (*call, *Error) {
	var m struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(raw, &m); err != nil || m.Version != "2.0" || m.Method == "" {
		return &call{ID: null}, &Error{Code: codeRequest, Message: "not a request of JSON-RPC 2.0"}
	}
	c := &call{ID: m.ID, Method: m.Method}
	if m.Params == nil {
		return c, nil
	}
	if err := json.Unmarshal(m.Params, &c.Params); err != nil {
		return c, &Error{Code: codeParams, Message: "parameters must be an array"}
	}
	return c, nil
}

// read answers requests and batches one after another until the connection ends.
func (p *peer) read() {
	for {
		_, raw, err := p.ws.ReadMessage()
		if err != nil {
			return
		}
		var batch []json.RawMessage
		switch {
		case !json.Valid(raw):
			p.answer(&call{ID: null}, nil, &Error{Code: codeParse, Message: "not JSON"})
		case json.Unmarshal(raw, &batch) != nil || len(batch) == 0:
			if !p.take(raw) {
				return
			}
		case !p.takeBatch(batch):
			return
		}
	}
}

// takeBatch answers all requests of a batch in one message. It sends no message if all
// of them are notifications. It returns false if the connection must end.
func (p *peer) takeBatch(batch []json.RawMessage) bool {
	var answers []object
	p.batch = &answers
	defer func() { p.batch = nil }()
	for _, raw := range batch {
		if !p.take(raw) {
			return false
		}
	}
	if len(answers) > 0 {
		p.send(answers)
	}
	p.begin()
	return true
}

// take carries out one request and reports whether the connection continues.
func (p *peer) take(raw []byte) bool {
	c, refused := decodeCall(raw)
	if refused != nil {
		p.answer(c, nil, refused)
		return true
	}
	return p.handle(c)
}

// answer sends the answer to a call, or adds it to the answers of the current batch. A
// notification gets no answer.
func (p *peer) answer(c *call, result any, e *Error) {
	if c.ID == nil {
		return
	}
	message := object{"jsonrpc": "2.0", "id": c.ID}
	if e != nil {
		message["error"] = e
	} else {
		message["result"] = result
	}
	if p.batch != nil {
		*p.batch = append(*p.batch, message)
		return
	}
	p.send(message)
}
