\set rows random_zipfian(1, 200, 1.5)
SELECT add(:rows);
