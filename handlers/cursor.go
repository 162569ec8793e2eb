package handlers

import (
	"encoding/base64"

	"nightshift/models"
	"nightshift/models/postgres"
)

// cursorCodec makes cursors that say nothing, can't be forged, and open only for what they are bound to.
type cursorCodec struct{ vault *postgres.Vault }

const cursorUse = "cursor"

var cursorText = base64.RawURLEncoding.Strict()

func (k cursorCodec) seal(place, bound []byte) string {
	return cursorText.EncodeToString(k.vault.Seal(cursorUse, place, bound))
}

func (k cursorCodec) open(token string, bound []byte) ([]byte, error) {
	raw, err := cursorText.DecodeString(token)
	if err == nil {
		raw, err = k.vault.Open(cursorUse, raw, bound)
	}
	if err != nil {
		return nil, badCursor("this cursor was made for another list, filter or tenant, or not here")
	}
	return raw, nil
}

// badCursor refuses the cursor of a list, with its place.
func badCursor(why string) error {
	e := models.Invalid("query.cursor", "%s", why)
	e.Code = models.InvalidCursor
	return e
}
