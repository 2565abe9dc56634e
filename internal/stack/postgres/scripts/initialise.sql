-- Makes the product's role and database. psql fills in role and database; the password is read here.
SET log_statement = 'none';
SET log_min_error_statement = 'panic';
SET log_min_duration_statement = -1;
\set password `cat "$AUTHSTACK_PASSWORD_FILE"`
CREATE ROLE :"role" LOGIN PASSWORD :'password';
CREATE DATABASE :"database" OWNER :"role" TEMPLATE template0 ENCODING 'UTF8';
