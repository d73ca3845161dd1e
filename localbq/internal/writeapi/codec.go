package writeapi

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that Codec stands in front of
	"google.golang.org/grpc/mem"
)

// Codec is the codec a server with this service must be made with (grpc.ForceServerCodecV2). It reads append requests in
// place, without a copy of every row, and leaves everything else to the ordinary one.
func Codec() encoding.CodecV2 { return codec{encoding.GetCodecV2("proto")} }

type codec struct{ encoding.CodecV2 }

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if r, ok := v.(*request); ok {
		return r.read(data)
	}
	return c.CodecV2.Unmarshal(data, v)
}
