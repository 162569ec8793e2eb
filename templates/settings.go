package templates

// pairs are the filters as the query of a link, with a cursor.
func (v ActivityView) pairs(cursor string) []string {
	return []string{"action", v.Filter["action"], "object", v.Filter["object"], "actor", v.Filter["actor"], "cursor", cursor}
}

func (v ActivityView) older(p Page) string {
	if v.Next == "" {
		return ""
	}
	return p.URL("/activity", v.pairs(v.Next)...)
}
