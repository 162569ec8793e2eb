package figures

import (
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"nightshift/models"
	"nightshift/scheduler/route"
)

// asked is one recorded question: of which type, how large, and how well each model answered it.
type asked struct {
	typ    string
	tokens int64
	scores []float64
}

// routed is what the choice among models saves against the best single one, learned on four fifths of recorded questions and
// held to the last, in turn. How the questions are shared out is chance, so it is done several times.
func routed(l *lab) []Figure {
	const name, loss = "cost against the best single model", "points lost by it"
	questions, entries, ok := routingTrace(l.Traces)
	if !ok {
		return []Figure{skipped(name), skipped(loss)}
	}
	var all, oracle bill
	for split := range uint64(splits) {
		order := rand.New(rand.NewPCG(split, 23)).Perm(len(questions))
		for fold := range folds {
			var learned, held []asked
			for i, at := range order {
				if i%folds == fold {
					held = append(held, questions[at])
				} else {
					learned = append(learned, questions[at])
				}
			}
			s := learnFold(learned, entries)
			for _, q := range held {
				all.add(s, q, s.choose(q))
			}
			s = knowing(s, held)
			for _, q := range held {
				oracle.add(s, q, s.best(q))
			}
		}
	}
	return []Figure{
		{Name: name, Value: all.saved(), Goal: -82, Fails: 0, Format: "%.1f %%", Note: fmt.Sprintf("9 models, %d folds, shared out %d times; by types, qualities known beforehand: %.1f %%, %.2f lost", folds, splits, oracle.saved(), oracle.lost())},
		{Name: loss, Value: all.lost(), Goal: 0.3, Fails: 5, Format: "%.2f"},
	}
}

const (
	folds  = 5
	splits = 5
)

// bill is what was spent and got by choices, and by the best single model beside them.
type bill struct{ n, spent, got, single, best float64 }

func (b *bill) add(s *student, q asked, chosen int) {
	b.n, b.spent, b.got = b.n+1, b.spent+price(s.entries, chosen, q), b.got+q.scores[chosen]
	b.single, b.best = b.single+price(s.entries, s.single, q), b.best+q.scores[s.single]
}

func (b *bill) saved() float64 { return 100 * (b.spent/b.single - 1) }

func (b *bill) lost() float64 { return 100 * (b.best - b.got) / b.n }

// price is what a question costs on a model, in millionths of a millionth of a dollar.
func price(entries []models.Model, m int, q asked) float64 {
	return float64(q.tokens) * float64(entries[m].InputMicro)
}

// student is what was learned of questions.
type student struct {
	entries []models.Model
	lows    map[string][]float64 // what the book says of each model, by type
	single  int                  // the model that is best over all types
	worth   float64              // of a question's price, in quality
}

// learnFold learns how good the models are, and how much quality a dollar is worth where nothing is lost.
func learnFold(questions []asked, entries []models.Model) *student {
	s, book := &student{entries: entries, lows: map[string][]float64{}}, route.NewBook()
	sums := make([]float64, len(entries))
	for _, q := range questions {
		for m, score := range q.scores {
			book.Judge(1, q.typ, entries[m].Name, score, nil)
			sums[m] += score
		}
	}
	s.single = slices.Index(sums, slices.Max(sums))
	for _, q := range questions {
		if s.lows[q.typ] == nil {
			for m := range entries {
				s.lows[q.typ] = append(s.lows[q.typ], book.Low(1, q.typ, &entries[m]))
			}
		}
	}
	s.weigh(questions)
	return s
}

// knowing is a student that knows beforehand how good each model is at each type of the questions that are held to it. Nobody
// can: it is what choosing by types could save at most.
func knowing(s *student, questions []asked) *student {
	out := &student{entries: s.entries, lows: map[string][]float64{}, single: s.single}
	count := map[string]float64{}
	for _, q := range questions {
		if count[q.typ]++; out.lows[q.typ] == nil {
			out.lows[q.typ] = make([]float64, len(s.entries))
		}
		for m, score := range q.scores {
			out.lows[q.typ][m] += (score - out.lows[q.typ][m]) / count[q.typ]
		}
	}
	out.weigh(questions)
	return out
}

// weigh finds how much quality a price is worth at most, if the questions together are to lose nothing.
func (s *student) weigh(questions []asked) {
	least := 0.0
	for _, q := range questions {
		least += q.scores[s.single]
	}
	low, high := 0.0, 1e-6
	for range 16 {
		s.worth = (low + high) / 2
		sum := 0.0
		for _, q := range questions {
			sum += q.scores[s.best(q)]
		}
		if sum >= least {
			low = s.worth
		} else {
			high = s.worth
		}
	}
	s.worth = low
}

// best is the model that gives most for what the question costs on it.
func (s *student) best(q asked) (best int) {
	most := math.Inf(-1)
	for m, low := range s.lows[q.typ] {
		if value := low - s.worth*price(s.entries, m, q); value > most {
			most, best = value, m
		}
	}
	return best
}

// choose asks for the quality that is worth its price, of which the caller knows the type and the tokens.
func (s *student) choose(q asked) int {
	lows := s.lows[q.typ]
	ask := &route.Ask{Type: q.typ, Tokens: q.tokens}
	ask.QualityTarget = lows[s.best(q)]
	options := make([]route.Option, len(s.entries))
	for m := range s.entries {
		options[m] = route.Option{Model: &s.entries[m], Factor: 1, Uses: route.Prior, Low: lows[m]}
	}
	name, _ := route.Choose(ask, route.Rank(ask, options))
	return slices.IndexFunc(s.entries, func(m models.Model) bool { return m.Name == name })
}

func routingTrace(folder string) (questions []asked, entries []models.Model, ok bool) {
	var prices map[string]struct {
		Input float64 `json:"input_price"`
	}
	text, err := os.ReadFile(filepath.Join(folder, "routing_llmrouter_prices.json"))
	if folder == "" || err != nil || json.Unmarshal(text, &prices) != nil {
		return nil, nil, false
	}
	file, err := os.Open(filepath.Join(folder, "routing_llmrouter_9models.csv.gz"))
	if err != nil {
		return nil, nil, false
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return nil, nil, false
	}
	rows, err := csv.NewReader(unpacked).ReadAll()
	if err != nil || len(rows) < folds {
		return nil, nil, false
	}
	for _, name := range rows[0][3:] {
		micro := int64(prices[name].Input * 1e6)
		entries = append(entries, models.Model{Name: name, InputMicro: micro, OutputMicro: micro, Enabled: true})
	}
	for _, row := range rows[1:] {
		q := asked{typ: row[1], tokens: int64(len(row[2])/4 + 250)}
		for _, field := range row[3:] {
			score, _ := strconv.ParseFloat(field, 64)
			q.scores = append(q.scores, score)
		}
		questions = append(questions, q)
	}
	return questions, entries, true
}
