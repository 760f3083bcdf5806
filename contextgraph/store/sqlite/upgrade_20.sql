-- Vectors of fragments and methodologies. Never changed once 0.2 is released.

ALTER TABLE fragment ADD COLUMN space TEXT;
ALTER TABLE fragment ADD COLUMN vector BLOB;
ALTER TABLE methodology ADD COLUMN space TEXT;
ALTER TABLE methodology ADD COLUMN vector BLOB;
