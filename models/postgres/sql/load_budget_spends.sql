-- Purpose: what was spent of budgets in the last periods in which anything was; another time zone moves where one begins by
--          less than the three days that are looked at. A sum ends at models.MostAmount. Index: budgets_pkey, budget_spends_pkey. Locks: none.
SELECT b.id, b.tenant, s.since, s.cost_micro, s.tokens
FROM budgets b
CROSS JOIN LATERAL (
    SELECT n.since FROM budget_spends n WHERE n.budget = b.id ORDER BY n.budget DESC, n.since DESC, n.batch DESC LIMIT 1
) newest
CROSS JOIN LATERAL (
    SELECT l.since, least(sum(l.cost_micro), 2305843009213693952)::bigint AS cost_micro, least(sum(l.tokens), 2305843009213693952)::bigint AS tokens FROM budget_spends l
    WHERE l.budget = b.id AND l.since >= newest.since - 259200000000 GROUP BY l.since
) s
ORDER BY b.id, s.since
