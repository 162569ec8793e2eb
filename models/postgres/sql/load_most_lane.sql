-- Purpose: the largest number any lane ever had. Index: highest_pkey. Locks: none.
SELECT number FROM highest WHERE name = 'lane'
