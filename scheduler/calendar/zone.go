package calendar

import (
	_ "embed" // the names of the zones
	"slices"
	"strings"
	"sync"
	"time"

	"nightshift/models"
)

//go:generate go test -run TestZoneNamesAreGos -write-zones

//go:embed zones.txt
var zonesText string

var zoneNames = strings.Fields(zonesText)

// loaded keeps zones once read, since reading one takes longer than using it. It holds names of zones.txt alone.
var loaded sync.Map

// Zones are the names of the tz database, sorted.
func Zones() []string { return slices.Clone(zoneNames) }

// Zone finds a zone of the tz database by its exact name; the empty name is UTC. The machine's own zone is none of them.
func Zone(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	if zone, ok := loaded.Load(name); ok {
		return zone.(*time.Location), nil
	}
	if strings.EqualFold(name, "local") || strings.EqualFold(name, "localtime") {
		return nil, models.Errorf(models.InvalidSchedule, "timezone %q is the local time of a machine, which says nothing to the others: name a zone such as \"UTC\" or \"Africa/Lusaka\"", name)
	}
	if _, known := slices.BinarySearch(zoneNames, name); !known {
		if near := nearestZone(name); near != "" {
			return nil, models.Errorf(models.InvalidSchedule, "timezone %q is not in the tz database: the nearest is %q", shortened(name), near)
		}
		return nil, models.Errorf(models.InvalidSchedule, "timezone %q is not in the tz database: use a name such as \"UTC\" or \"Africa/Lusaka\"", shortened(name))
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, models.Errorf(models.Internal, "timezone %q can't be read: %w", name, err)
	}
	loaded.Store(name, zone)
	return zone, nil
}

// abbreviations that people write for a zone; several places share most of them, so they are only ever proposed.
var abbreviations = map[string]string{
	"PST": "America/Los_Angeles", "PDT": "America/Los_Angeles", "MDT": "America/Denver", "CST": "America/Chicago",
	"CDT": "America/Chicago", "EDT": "America/New_York", "BST": "Europe/London", "CEST": "Europe/Berlin",
	"EEST": "Europe/Athens", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "KST": "Asia/Seoul", "SGT": "Asia/Singapore",
	"CAT": "Africa/Lusaka", "EAT": "Africa/Nairobi", "WAT": "Africa/Lagos", "SAST": "Africa/Johannesburg",
	"AEST": "Australia/Sydney", "AEDT": "Australia/Sydney", "NZST": "Pacific/Auckland", "NZDT": "Pacific/Auckland", "Z": "UTC",
}

// nearestZone is the name that was most likely meant, or none.
func nearestZone(name string) string {
	if len(name) > 64 {
		return ""
	}
	if zone := abbreviations[strings.ToUpper(name)]; zone != "" {
		return zone
	}
	if zone := fixedOffset(name); zone != "" {
		return zone
	}
	wanted := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(name), " ", "_"))
	best, least := "", max(2, len(wanted)/4)+1
	for _, zone := range zoneNames {
		lower := strings.ToLower(zone)
		city := lower[strings.LastIndexByte(lower, '/')+1:]
		if lower == wanted || city == wanted {
			return zone
		}
		if d := distance(wanted, lower, least); d < least {
			best, least = zone, d
		}
		if d := distance(wanted, city, least); d < least && len(wanted) > 3 {
			best, least = zone, d
		}
	}
	return best
}

// fixedOffset turns UTC+2, GMT-05:00 and +02:00 into the zone of that offset, whose name has the sign turned round.
func fixedOffset(name string) string {
	rest := strings.ToUpper(strings.TrimSpace(name))
	rest = strings.TrimPrefix(strings.TrimPrefix(rest, "UTC"), "GMT")
	if len(rest) < 2 || rest[0] != '+' && rest[0] != '-' {
		return ""
	}
	sign := map[byte]string{'+': "-", '-': "+"}[rest[0]]
	hours := strings.TrimPrefix(strings.TrimSuffix(strings.TrimSuffix(rest[1:], "00"), ":"), "0")
	zone := "Etc/GMT" + sign + hours
	if hours == "" || hours == "0" {
		zone = "UTC"
	}
	if _, known := slices.BinarySearch(zoneNames, zone); known {
		return zone
	}
	return ""
}

// distance is the number of letters to change, add or drop to get from a to b, or at least most when it is that much.
func distance(a, b string, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner, least := row[0], i+1
		row[0] = i + 1
		for j := range len(b) {
			cost := corner
			if a[i] != b[j] {
				cost++
			}
			corner = row[j+1]
			row[j+1] = min(cost, corner+1, row[j]+1)
			least = min(least, row[j+1])
		}
		if least >= most {
			return most
		}
	}
	return row[len(b)]
}

// shortened keeps what a caller sent from filling an answer.
func shortened(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
