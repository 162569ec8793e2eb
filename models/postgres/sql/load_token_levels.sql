-- Purpose: what is left of tenants' tokens, as last saved. Index: none. Locks: none.
SELECT tenant, credit, at FROM token_levels ORDER BY tenant
