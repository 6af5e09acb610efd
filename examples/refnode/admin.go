package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/guard"
	"github.com/jamq/jamq/examples/refnode/lab"
)

// callAdmin calls a method of a running node with a token of the administrators, and prints the
// answer as JSON. The arguments of the command are the method and its parameters; a parameter that
// is no JSON is a string.
func callAdmin(ctx context.Context, _ lab.Config, o *options, stdout io.Writer) error {
	client, err := rpc.DialOptions(ctx, o.admin, rpc.WithHTTPAuth(guard.Auth(o.rpc.Secret)))
	if err != nil {
		return err
	}
	defer client.Close()
	params := make([]any, len(o.args)-1)
	for i, arg := range o.args[1:] {
		if params[i] = arg; json.Valid([]byte(arg)) {
			params[i] = json.RawMessage(arg)
		}
	}
	var answer json.RawMessage
	if err := client.CallContext(ctx, &answer, o.args[0], params...); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s\n", answer)
	return err
}

// checkAdmin refuses arguments without -admin, and -admin without what it needs.
func (o *options) checkAdmin() error {
	switch {
	case o.admin == "" && len(o.args) > 0:
		return fmt.Errorf("unexpected argument %q", o.args[0])
	case o.admin != "" && (len(o.rpc.Secret) == 0 || len(o.args) == 0):
		return errors.New("-admin needs -authrpc.jwtsecret, and a method after the flags")
	}
	return nil
}
