-- ------------------------------------------------------------------------------------------------
-- Sets of numbers: CREATE INDEX ON docs USING neardup (passages(body))
-- ------------------------------------------------------------------------------------------------

-- The operators are the server's, for any array. Equality finds equal arrays, and makes the class
-- one for columns in front of a fingerprint, too.
CREATE OPERATOR CLASS bigint_array_ops DEFAULT FOR TYPE bigint[] USING neardup AS
    OPERATOR 5 && (anyarray, anyarray),
    OPERATOR 7 @> (anyarray, anyarray),
    OPERATOR 3 = (anyarray, anyarray);
