// No query finds recoveries by their family alone.
DROP INDEX recovered_family IF EXISTS;

DROP INDEX recovered_family_in_repo IF EXISTS;
