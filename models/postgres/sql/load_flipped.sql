-- Purpose: flipped bodies of which rows are still staged. Index: tasks_staged. Locks: none.
SELECT s.id, s.env, s.tasks, s.at, s.flipped FROM stagings s
WHERE s.flipped AND EXISTS (SELECT FROM tasks t WHERE t.staging = s.id AND t.state = 0) ORDER BY s.id
