package etcdapi

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// serveStream answers with one line per message (GW-5). The body of a request
// may hold more than one message, one after the other.
func (g *gateway) serveStream(w http.ResponseWriter, r *http.Request, m gatewayMethod) {
	stream, err := g.conn.NewStream(outgoing(r), &m.stream, m.name)
	if err != nil {
		writeError(w, err)
		return
	}
	control := http.NewResponseController(w)
	if err := control.EnableFullDuplex(); err != nil {
		writeError(w, status.Error(codes.Unimplemented, err.Error()))
		return
	}
	body := json.NewDecoder(r.Body)
	if err := sendJSON(stream, m, body); err != nil {
		writeError(w, err)
		return
	}
	go func() {
		for sendJSON(stream, m, body) == nil {
		}
		stream.CloseSend()
	}()
	w.Header().Set("Content-Type", "application/json")
	lines := json.NewEncoder(w)
	for {
		line := receiveLine(stream, m)
		if line == nil {
			return
		}
		if lines.Encode(line) != nil || control.Flush() != nil || line.Error != nil {
			return
		}
	}
}

// sendJSON sends the next message of a request's body.
func sendJSON(stream grpc.ClientStream, m gatewayMethod, body *json.Decoder) error {
	var message json.RawMessage
	if err := body.Decode(&message); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	req := m.request.New().Interface()
	if err := unmarshalJSON(message, req); err != nil {
		return err
	}
	return stream.SendMsg(req)
}

type gatewayLine struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  *gatewayError   `json:"error,omitempty"`
}

// receiveLine is the line for the next message of a stream, nil at its end.
func receiveLine(stream grpc.ClientStream, m gatewayMethod) *gatewayLine {
	resp := m.answer.New().Interface()
	err := stream.RecvMsg(resp)
	if errors.Is(err, io.EOF) {
		return nil
	}
	var out []byte
	if err == nil {
		out, err = gatewayOut.Marshal(resp)
	}
	if err != nil {
		return &gatewayLine{Error: newGatewayError(err)}
	}
	return &gatewayLine{Result: out}
}

// gatewayError is the JSON form of a status.
type gatewayError struct {
	Code    codes.Code `json:"code"`
	Message string     `json:"message"`
}

func newGatewayError(err error) *gatewayError {
	st := status.Convert(err)
	return &gatewayError{Code: st.Code(), Message: st.Message()}
}

// httpStatus is the usual mapping of gRPC's codes (GW-4).
var httpStatus = map[codes.Code]int{
	codes.InvalidArgument:    http.StatusBadRequest,
	codes.FailedPrecondition: http.StatusBadRequest,
	codes.OutOfRange:         http.StatusBadRequest,
	codes.Unauthenticated:    http.StatusUnauthorized,
	codes.PermissionDenied:   http.StatusForbidden,
	codes.NotFound:           http.StatusNotFound,
	codes.ResourceExhausted:  http.StatusTooManyRequests,
	codes.Canceled:           499,
	codes.Unimplemented:      http.StatusNotImplemented,
	codes.Unavailable:        http.StatusServiceUnavailable,
	codes.DeadlineExceeded:   http.StatusGatewayTimeout,
}

func writeError(w http.ResponseWriter, err error) {
	e := newGatewayError(err)
	code, ok := httpStatus[e.Code]
	if !ok {
		code = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(e)
}
