-- Purpose: saved histograms of run times. Index: estimates_pkey. Locks: none.
SELECT tenant, class, counts FROM estimates ORDER BY tenant, class
