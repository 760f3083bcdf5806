"""Secrets are masked by kind; code, words and placeholders are not."""

import json
import string
import subprocess
import sys
import tomllib
from importlib.resources import files
from itertools import product
from random import Random

import pytest

from contextgraph.text import mask_secrets, masked_name, may_hold_secrets
from contextgraph.text.secret_rules import tokens
from tests.deadline import deadline
from tests.planted import generated

# Joined at run time: nothing in this file may look like a secret to a scanner.
RANDOM = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0" + "xR2uL5oI8eA"
HEX = "0f3a9c1d" * 4
BASE64_LINE = "MIIEvQIBADANBgkqhkiG9w0BAQ" + "EFAASCBKcwggSjAgEAAoIBAQ"
BEGIN, END = "-----BEGIN RSA PRIVATE" + " KEY-----", "-----END RSA PRIVATE" + " KEY-----"
JWT = ".".join(("eyJ" + "hbGciOiJIUzI1NiJ9", "eyJ" + "zdWIiOiIxMjM0In0", RANDOM))

TOKENS = {
    "aws-access-key": ["AK" + "IAQ7ZT4XWJ2NMB5RLC", "AS" + "IAQ7ZT4XWJ2NMB5RLC"],
    "github-token": [f"gh{letter}_" + RANDOM[:36] for letter in "pousr"]
    + ["github" + "_pat_11ABCDEFG0" + RANDOM],
    "gitlab-token": ["glp" + "at-" + RANDOM[:20]],
    "openai-key": ["sk" + "-" + RANDOM, "sk" + "-proj-" + RANDOM, "sk" + "-or-v1-" + HEX * 2],
    "anthropic-key": ["sk" + "-ant-api03-" + RANDOM + "-" + RANDOM],
    "slack-token": ["xo" + "xb-2384729384-" + RANDOM[:24]],
    "stripe-key": ["sk" + "_live_" + RANDOM[:24], "rk" + "_live_" + RANDOM[:24]],
    "google-api-key": ["AI" + "za" + RANDOM[:35]],
    "npm-token": ["np" + "m_" + RANDOM[:36]],
    "pypi-token": ["pyp" + "i-AgEI" + "cHlwaS5vcmc" + RANDOM],
    "huggingface-token": ["h" + "f_" + RANDOM[:34]],
    "jwt": [JWT],
    "cursor-key": ["ke" + "y_" + HEX * 2],
}


AROUND = ["{}", "use {} now", 'key="{}"', "[{}]", "a={}\nb", "/{}/", "é{}é"]


@pytest.mark.parametrize("kind", TOKENS)
def test_a_token_with_a_known_prefix_is_masked_wherever_it_stands(kind):
    for token, form in product(TOKENS[kind], AROUND):
        assert mask_secrets(form.format(token)) == form.format(f"<secret:{kind}>")


@pytest.mark.parametrize(
    ("before", "value", "after", "kind"),
    [
        ('password = "', "hunter2hunter2", '"', "password"),
        ("password='", "S3cret!pass", "')", "password"),
        ('"db_password": "', "Tr0ub4dor&3", '",', "password"),
        ("  password: ", "s3cr3t-p4ss", "\n", "password"),
        ("MYSQL_PASSWORD=", "correct1horse", "\n", "password"),
        ("DB_PWD=", "correct1horse", "\n", "password"),
        ("DB_PWD= ", "correct1horse", " \n", "credential"),
        ("export PASSWD=", "correct1horse", "", "password"),
        ("'password' => '", "hunter2hunter2", "'", "password"),
        ('login(passwd: str = "', "hunter2hunter2", '")', "password"),
        ('{\\"password\\": \\"', "hunter2hunter2", '\\"}', "password"),
        ('environ["API_KEY"] = "', HEX, '"', "api-key"),
        ("api-key: ", HEX, "\n", "api-key"),
        ("apiKey: '", HEX, "'", "api-key"),
        ('ACCESS_KEY = "', RANDOM, '"', "api-key"),
        ('client_secret="', RANDOM, '"', "secret"),
        ("SECRET_KEY = '", "k#skh!5o2zz9hr&akid5zh", "'", "secret"),
        ('auth_token = "', RANDOM, '"', "token"),
        ("GET /items?access_token=", HEX, "&page=2", "token"),
        ("--token=", HEX, " run", "token"),
        ('TOKEN: Final = b"', HEX, '"', "token"),
        ("aws_secret_access_key = ", "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYzQ8dKEYabc", "\n", None),
        ("AWS_SECRET_ACCESS_KEY=", "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYzQ8dKEYabc", "\n", None),
        ('secretAccessKey: "', "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYzQ8dKEYabc", '"', None),
        ("Authorization: Bearer ", RANDOM, "\n", "authorization"),
        ('-H "authorization: Basic ', "dXNlcjpodW50ZXIy", '"', "authorization"),
        ('{"Authorization": "Bearer ', HEX, '"}', "authorization"),
        ('headers["Authorization"] = "token ', HEX, '"', "authorization"),
        ('HTTP_AUTHORIZATION="Bearer ', HEX, '"', "authorization"),
        ("postgres://admin:", "hunter2", "@db:5432/app", "url-password"),
        ("https://bot:", "correct-horse", "@git.local/x.git", "url-password"),
    ],
)
def test_a_literal_value_of_a_name_for_secrets_is_masked(before, value, after, kind):
    marker = f"<secret:{kind or 'aws-secret-key'}>"
    assert mask_secrets(before + value + after) == before + marker + after


@pytest.mark.parametrize(
    "body",
    [
        f"\n{BASE64_LINE}\n{BASE64_LINE}\nabc==\n",
        f"\\n{BASE64_LINE}\\n{BASE64_LINE}\\nabc==\\n",
        f"\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n{BASE64_LINE}\n{BASE64_LINE}\n",
        f'\n12:  "{BASE64_LINE}"\n13:  "{BASE64_LINE}"\n',
    ],
)
def test_the_body_of_a_private_key_is_masked(body):
    masked = mask_secrets(f"x {BEGIN}{body}{END} y")
    assert BASE64_LINE not in masked
    assert "abc==" not in masked
    assert masked.startswith(f"x {BEGIN}<secret:private-key>")
    assert masked.endswith(f"{END} y")


def test_a_private_key_without_its_end_is_masked():
    cut = f"{BEGIN}\n{BASE64_LINE}\n{BASE64_LINE[:9]}"
    assert mask_secrets(cut) == f"{BEGIN}<secret:private-key>"
    assert mask_secrets(f"{BEGIN}\n{BASE64_LINE}\n$ ls -l") == (
        f"{BEGIN}<secret:private-key>\n$ ls -l"
    )


CODE = [
    "token = self.get_token()",
    "token = tokens[0]",
    "token = stream.current_token1",
    "token: str",
    "token: Optional[str] = None",
    "token=lexer_token_2)",
    "password=None",
    'password = "password"',
    'password = "secret"',
    'PASSWORD = "PASSWORD_FIELD"',
    "password = getpass.getpass()",
    'password = "<your-password1>"',
    'password = "${DB_PASSWORD1}"',
    "PASSWORD=$DB_PASSWORD1",
    'password = "{password1}"',
    'password = f"{user}12345678"',
    'password = "%(password1)s"',
    'password = "xxxxxxxx1"',
    'password = "********"',
    'password = "example1234"',
    'token = "your-token-123"',
    'token = "float32_type"',
    'token_type = "identifier12"',
    'max_tokens = "100000000"',
    "max_tokens: 1000000000",
    'token == "abc123def456"',
    'secret_name = "path/to/thing1"',
    'secret = "/run/secrets/db1"',
    'secret = "https://vault.local/v1"',
    'private_key = "id_rsa_2048.pem"',
    'primary_key = "abc123def456"',
    "foreign_key='app1.Model2'",
    "sort(key=lambda item1: item1[2])",
    '"Authorization": "Bearer " + token',
    'f"Authorization: Bearer {token}"',
    "Authorization: Bearer <token>",
    "Authorization: Bearer YOUR_TOKEN_HERE",
    "authorization = basic authentication",
    "http://user:pass@host/",
    "http://user:password@host/",
    "cloudinary://api_key:api_secret@name",
    "http://${USER}:${PASSWORD}@host/",
    "http://localhost:8000/@me",
    "git@github.com:owner/name.git",
    "@decorator",
    "sk-estimator-doc-link fitted",
    "task-1234567890123456789012345",
    "sk" + "-xxxxxxxxxxxxxxxxxxxxxxxx1",
    "ghp" + "_" + "x" * 36,
    "hf_hub_download_with_retries_and_timeout",
    "npm_config_registry",
    "AK" + "IAIOSFODNN7EXAMPLE",
    "AKIA",
    f'if "{BEGIN}" in text:',
    f"{BEGIN}\n...\n{END}",
    "commit " + HEX + "0f3a9c1d",
    "eyJ is how a JWT begins",
]


def test_code_words_and_placeholders_stay():
    assert [code for code in CODE if mask_secrets(code) != code] == []


# The forms in which gitleaks tests each of its rules, with secrets that it generates.
FORMS = r"""
xToken="{}"
xToken = {}
    "x_token": "{}"
    \"x_token\": \"{}\"
<xToken>{}</xToken>
<xToken>\n    {}\n</xToken>
x_token: {}
x_token: '{}'
x_token: |\n  {}
string xToken = "{}";
xToken := `{}`
$xToken .= "{}"
xToken,{},
  "xToken" => "{}"
X_TOKEN ::= "{}"
X_TOKEN ?= "{}"
curl -H 'X-Token: {}'
""".strip().splitlines()
GITLEAKS = tomllib.loads(files("contextgraph.text").joinpath("secret_rules.toml").read_text())


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("curl -X POST https://a.test \\\n  -u robot:{}", "yqDVtkqPE" + "CriaLRi"),
        ('curl -u ":{}" https://a.test', "d2LkV78" + "zLx!t"),
        ('curl -u "{}:" https://a.test', "d2LkV78" + "zLx!t"),
        ("curl --user  'robot:{}' https://a.test", "h0pk1ns" + "~21s"),
        ("curl --user robot:'{}' https://a.test", "pRf7vG2h" + "1L8nQkW9"),
        ("curl -H 'Authorization:  {}'", "5eb4223e-5008-46e5" + "-be67-c7b8f2732305"),
        ('curl -H "Authorization: Api-Token {}"', HEX),
        ('curl -H "Token: {}" -d x', "3fea6af1" + "349166ea"),
        ("PGPASSWORD={} psql", "XxX7tKTqN" + "4adn2!"),
    ],
)
def test_logins_and_headers_of_curl_are_masked(text, secret):
    assert secret not in mask_secrets(text.format(secret))


OF_CURL = [
    "curl -i -u 'test:test'",
    'curl -sL --user "$1:$2" "$3"',
    "curl --user neo4j:[PASSWORD] http://[IP]:7474/db/data/",
    'curl -u "${username}":"${password}"',
    'curl -u ":" https://localhost:9200',
    'curl -X POST --user "$(cat login.txt):$(cat password.txt)"',
    'curl -H "Authorization: Bearer <API token>"',
    'curl -H "Authorization: Token **********"',
    "docker run -u 1000:1000 image2 && curl https://a.test",
    "authorization: Optional[AuthorizationHeader2] = None",
    "Authorization: AWS4-HMAC-SHA256 Credential",
]


def test_variables_and_placeholders_of_curl_stay():
    assert [text for text in OF_CURL if mask_secrets(text) != text] == []


@pytest.mark.parametrize("rule", GITLEAKS["rules"], ids=lambda rule: rule["kind"])
def test_every_rule_of_gitleaks_masks_its_examples(rule):
    chance = Random(rule["kind"])
    for form in FORMS:
        secret = generated(rule["pattern"], chance)
        text = form.replace("\\n", "\n").format(secret)
        assert secret not in mask_secrets(text), text


def test_a_text_without_secrets_is_returned_itself():
    text = "Traceback (most recent call last):\n  KeyError: 'token'\n"
    assert mask_secrets(text) is text


def test_masking_twice_changes_nothing_more():
    text = "\n".join(
        [f"x={token}" for tokens in TOKENS.values() for token in tokens]
        + [f'password="{RANDOM}"', f"Authorization: Bearer {RANDOM}", f"s3://u:{HEX}@host"]
    )
    assert mask_secrets(mask_secrets(text)) == mask_secrets(text)


def test_a_secret_that_touches_a_masked_one_is_masked_too():
    token = "gh" + "p_" + RANDOM[:36]
    text = f"{BEGIN}\n{BASE64_LINE}\n{END}{token}"
    assert token not in mask_secrets(text)


def test_masked_json_is_still_json():
    record = {"password": RANDOM, "log": f'token="{HEX}" and {JWT}', "n": 1}
    masked = json.loads(mask_secrets(json.dumps(record)))
    assert masked["n"] == 1
    assert HEX not in masked["log"]
    assert masked["password"] == "<secret:password>"


@pytest.mark.parametrize(
    "unit",
    [
        "eyJ",
        ".eyJaaaaaaaaa",
        "sk-",
        "gh" + "p_",
        "token=",
        'password="',
        "secret_access_key_",
        "://a:",
        "://a:b@",
        "@",
        "a@",
        "PRIVATE KEY-----",
        "PRIVATE KEY-----\n" + "A" * 16,
        "Authorization: Bearer ",
        "Authorization: ",
        "curl -u a1b2" + ":c3d4e5 ",
        "curl \\\n --user ",
        "EAAA",
        "xoxb-",
        "pypi-AgEI",
        "aaaaaaaaaaaaaaa1",
        "\nAAAAAAAAAAAAAAAA",
        "api_key: a[a",
    ],
)
def test_a_hostile_line_does_not_take_minutes(unit):
    with deadline(5):
        mask_secrets(BEGIN + unit * (20_000 // len(unit)))


def test_many_backslashes_do_not_take_minutes() -> None:
    with deadline(5):
        mask_secrets(r"\npass: 1 " + "\\" * 100_000)


def test_many_prefixes_in_one_word_do_not_take_minutes():
    with deadline():
        for prefix in sorted(tokens()):
            mask_secrets(prefix * (5_000 // len(prefix)))
            mask_secrets((prefix.upper() + "a1b2c3d4") * (5_000 // (len(prefix) + 8)))


ORDINARY = [
    "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "run 123e4567-e89b-12d3-a456-426614174000",
    "tests/test_auth.py::test_token_is_refreshed_after_15_minutes PASSED",
    "/usr/lib/python3.11/site-packages/keyring/backends/token_store_v2.py",
    "mkdir -p build/x86_64-linux-gnu-2",
    "docker run -u 1000:1000 image2",
    "@click.option('--password', default=None, help='p4ss')",
    "parser.add_argument('--token', action='store_true2')",
    "pip install --no-cache-dir requests==2.31.0",
    "pass --password PASSWORD to log in",
    'password: "must be at least eight characters long"',
    "Set-Cookie: theme=dark",
    "api-documentation-2024-build-0123456789",
    "https://github.com/owner/hooks/blob/main/a1b2c3.py",
]


def test_hashes_paths_names_and_options_stay():
    assert [text for text in ORDINARY if mask_secrets(text) != text] == []


PASSWORD = "vT4" + "!kQ9zLm2xR"


OF_PASSWORDS = [
    *(f"export SERVICE_{end}={{}}\n" for end in "PASS PAT KEY CREDENTIALS AUTH PW SALT".split()),
    "DBPW={}\n",
    "SMTPPASS='{}'\n",
    'userpass = "{}"\n',
    "//registry.example/:_auth={}\n",
    "<password>{}</password>",
    '<add key="DbPassword" value="{}" />',
    '<property name="password" value="{}"/>',
    '<user name="bob" password="{}"/>',
    'source.setPassword("{}");',
    ".withPassword('{}')",
    'properties.setProperty("db.password", "{}");',
    'os.Setenv("API_SECRET", "{}")',
    "mysqldump -u root -p{} db",
    "redis-cli -h host -a {} ping",
    "ldapsearch -x -D cn=a -w {} -b dc=x",
    "zip -P {} a.zip b",
    "7z x a.7z -p{}",
    "keytool -list -storepass {}",
    "openssl rsa -in k -passin pass:{}",
    "sqlcmd -S h -U sa -P {}",
    "db.example:5432:app:app:{}\n",
    "*:*:*:app:{}\n",
    ".example.com\tTRUE\t/\tTRUE\t1893456000\tsession\t{}\n",
    "htpasswd -cbB .htpasswd bob {} >> log\n",
    "echo 'bob:{}' | chpasswd",
    "echo {} | sudo -S apt update",
    "printf '%s\\n' {} | docker login -u bob --password-stdin",
    "CREATE USER a IDENTIFIED BY '{}';",
    "ALTER ROLE a WITH ENCRYPTED PASSWORD '{}';",
    "rabbitmqctl add_user bob {}",
    "net user bob {} /add",
    "smbclient //h/share {} -U bob",
    "smbclient //h/share -U bob%{}",
    "sqlplus -S bob/{}@db",
    "requirepass {}\n",
    "mysqladmin -u root password {}",
    "helm install --set db.password={} x",
    "psql 'host=db user=bob password={} sslmode=require'",
    "aws configure set aws_secret_access_key {} --profile a",
    '$s = ConvertTo-SecureString "{}" -AsPlainText',
    "<key>ApiToken</key>\n\t<string>{}</string>",
    "new NetworkCredential('bob', '{}')",
    'get(url, auth=("bob", "{}"), timeout=5)',
    "Cookie: theme=dark; session={}; lang=de",
    "bob:$6$saltsaltsalt${}:20011:0:99999:7:::",
    "userPassword: {{SSHA}}{}",
    '{{"a": "{{\\"password\\": \\"{}\\"}}"}}',
    '{{"a": "{{\\\\\\"password\\\\\\": \\\\\\"{}\\\\\\"}}"}}',
    "{{\\u0022password\\u0022:\\u0022{}\\u0022}}",
]


def test_a_password_is_masked_wherever_programs_and_files_put_it():
    for form in OF_PASSWORDS:
        value = RANDOM[:24] + "7!" if "=" in form or "\t" in form else PASSWORD
        value = RANDOM if "$" in form or "SSHA" in form else value
        masked = mask_secrets(form.format(value))
        assert value not in masked
        assert "<secret:" in masked
        assert mask_secrets(masked) == masked


@pytest.mark.parametrize(
    "token",
    [
        "gsk" + "_" + RANDOM * 2,
        "xai" + "-" + RANDOM * 2,
        "dapi" + HEX,
        "figd" + "_" + RANDOM,
        "sbp" + "_" + HEX,
        "NRAK" + "-" + RANDOM[:27].upper(),
        "ATATT3x" + "FfGF0" + RANDOM * 3,
        "tskey" + "-auth-" + RANDOM,
        "r8" + "_" + RANDOM[:37],
        "rnd" + "_" + RANDOM[:28],
        "nvapi" + "-" + RANDOM * 2,
        "LTAI" + RANDOM[:20],
        "AKID" + RANDOM[:32],
        "1//0" + RANDOM * 2,
    ],
)
def test_a_token_of_a_provider_is_masked(token):
    assert token not in mask_secrets(f"use {token} now")


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("M" + RANDOM[:23], "." + "Gx3kQ9." + RANDOM[:38], ""),
        ("https://a.blob.core.windows.net/c?sv=1&sig=", RANDOM + "%3D", ""),
        ("https://b.s3.amazonaws.com/k?X-Amz-Signature=", HEX * 2, "&x=1"),
        ("https://x.webhook.office.com/webhookb2/", f"{'a1b2c3d4-' * 4}"[:35], ""),
        ("Private-Lines: 1\n", BASE64_LINE * 2, "\nPrivate-MAC: "),
    ],
)
def test_what_signs_and_keys_of_other_forms_are_masked(before, value, after):
    if "webhookb2" in before:
        identity = "1a2b3c4d-0000-1111-2222-333344445555"
        value = f"{identity}@{identity}/IncomingWebhook/{HEX}/{identity}"
    assert value not in mask_secrets(before + value + after)


CHOSEN = "Kaffee" + "4667!"


BESIDE = [
    ('{{"key": "x-api-key", "value": "{}"}}', RANDOM),
    ('{{"name": "Authorization", "value": "Bearer {}"}}', RANDOM),
    ('{{"name": "cookie", "value": "sid={}"}}', HEX),
    ("- name: DB_PASSWORD\n  value: {}\n", PASSWORD),
    ("storePassword '{}'", CHOSEN),
    ("the password is {}", CHOSEN),
    ("NEO4J_AUTH=neo4j/{}", CHOSEN),
    ('cloud.auth: "elastic:{}"', RANDOM[:24]),
    ("NEXMO_API_SECRET={}", "kSecRBB" + "ppyBOLzTE"),
    ("//reg.test/:_password={}", "kySL/yvMR" + "fNWdh/cFtOl"),
    ("pass_phrase={}", PASSWORD),
    ('<machineKey validationKey="{}"', HEX.upper() * 4),
    ("https://g.test/p?private_token={}", "YOGxB" + "_0JNwkUSkMfUjla"),
    ("login --apikey {}", RANDOM),
    ("curl --oauth2-bearer {} https://x.test", RANDOM),
    ("X-Auth: Bearer {}", RANDOM),
    ("curl -b 'sessionid={}' https://x.test", HEX),
    ("http -a me:{} https://x.test", CHOSEN),
    ("skopeo copy --src-creds me:{} docker://x", CHOSEN),
    ("notarytool submit x.zip --password {}", "full-zoin" + "-uvow-aapi"),
    ("security add-generic-password -a me -w {}", CHOSEN),
    ("admin reset-admin-password {}", CHOSEN),
    ("poetry config pypi-token.acme {}", RANDOM),
    ("127.0.0.1:6379> AUTH {}", CHOSEN),
    ('Open("mysql", "app:{}@tcp(db:3306)/app")', RANDOM[:14]),
    ("jdbc:oracle:thin:scott/{}@//db:1521/x", RANDOM[:14]),
    ('{{"kty":"EC","d":"{}"}}', RANDOM),
    ("{}", "EA" + "AP" + RANDOM * 3),
    ("{}", "fc" + "-" + HEX),
    ("{}", f"st.{HEX[:24]}.{HEX}.{HEX}"),
    ("{}", "nse" + "c1" + HEX * 2),
    ("Fastly-Key: {}", RANDOM[:32]),
    ("arangosh --server.password {}", CHOSEN),
    ("cbq -u Administrator -p {} -e x", CHOSEN),
    ("{}", "AVN" + "S_" + RANDOM[:4] + "-" + RANDOM[:14]),
    ("use the password {} for staging", CHOSEN),
    ("Das Passwort lautet {}", CHOSEN),
    ("pass: {}", "Tr0ub" + "4dor&3"),
    ("sshpass -p '{}' ssh me@h", "a&b" + "7|Kq;9"),
    ("CREATE LOGIN app WITH PASSWORD = N'{}'", CHOSEN),
    ("INSERT INTO users (name, password) VALUES ('jo', '{}')", CHOSEN),
    ("process.env.JWT_SECRET || '{}'", RANDOM[:20]),
    ("${{DB_PASSWORD:-{}}}", CHOSEN),
    ("sftp://me:{}@x.io/f", "k1tty" + "C@t99"),
    ("AdministratorPassword><Value>{}</Value>", CHOSEN),
    ('<Pass encoding="base64">{}</Pass>', "SGVsbG8" + "sIDEyMw"),
    ("oc login --token={} https://x", RANDOM[:17]),
    ("x-functions-key: {}", HEX),
    ("routing_key: {}", HEX),
    ("FINNHUB_KEY={}", "rsn0inqp4n" + "qv9o03332s"),
    (
        "key_id " + "ASIA" + "2A4B6C8D0E2F4G6H\nsecret {}",
        "wJa/rXUt" + "nFEMI7K7MDENGbPxRfiCYzzzq9sTaB3d",
    ),
    ('getConnection(url, "app", "{}")', CHOSEN),
    ("jwt.sign(payload, '{}')", RANDOM[:32]),
    ("otpauth://totp/x:jo?secret={}&issuer=x", "SVIPUQLF" + "RJCHJRWT"),
    ("echo {} | gh auth login --with-token", CHOSEN),
    ("echo {} | wrangler secret put KEY", CHOSEN),
    ("netlify deploy --auth {}", CHOSEN),
    ("netlify auth {}", RANDOM[:40]),
    ("java -jar cli.jar -auth me:{} list", CHOSEN),
    ("curl -u {}:X https://x.test", RANDOM[:20]),
    ("username jo password 0 {}", CHOSEN),
    ("enable secret {}", CHOSEN),
    ("proxy_set_header X-Api-Key {};", RANDOM[:40]),
    ("DeepL-Auth-Key {}", RANDOM[:32]),
    ("https://hook.eu1.make.com/{}", RANDOM[:32].lower()),
    ("https://x.quiknode.pro/{}/", HEX + HEX[:8]),
    ("https://maker.ifttt.com/trigger/x/with/key/{}", RANDOM[:22]),
    ("{}", RANDOM[:42] + "Az" + "SeAb3dE6"),
    ("{}", "SU" + "A" + "Q2JX7B3MKDA" * 5),
    ("{}", "K00" + "1" + RANDOM[:27]),
    ("{}", "mls" + "n." + HEX * 2),
    ('{{password, "{}"}}', CHOSEN),
    ('Dim password As String = "{}"', CHOSEN),
    ("**Password:** `{}`", CHOSEN),
    ("| Password | {} |", CHOSEN),
    ("pw: {}", CHOSEN),
    ("password: &pw {}", CHOSEN),
    ("password: |\n  {}\n", CHOSEN),
    ("log in as root with password {} and check", CHOSEN),
    ("my key is {}", RANDOM),
    ("the token {} works", HEX),
    ("etcdctl --user root:{} get x", CHOSEN),
    ("curl --proxy-user me:{} x.test", CHOSEN),
    ("ssh-keygen -t ed25519 -N '{}' -f k", CHOSEN),
    ("security unlock-keychain -p {} login.keychain", CHOSEN),
    ("--add-config 'SCRAM-SHA-512=[password={}]'", "Panther" + "5591?rED"),
    ("Variables={{DB_PASS={}}}", CHOSEN),
    ("ParameterKey=DBPassword,ParameterValue={}", CHOSEN),
    ("INSERT INTO api_keys (user_id, token) VALUES (7, '{}')", RANDOM[:40]),
    ("<param-name>password</param-name><param-value>{}</param-value>", CHOSEN),
    ("client.connect(h, 22, 'jo', '{}')", CHOSEN),
    ('"Jwt": {{"Key": "{}"}}', RANDOM[:32]),
    (".dockerconfigjson: eyJhdXRo{}", RANDOM),
    ("set psksecret {}", CHOSEN),
    ("the password for staging is {}", CHOSEN),
    ("le mot de passe est {}", CHOSEN),
    ("setx API_KEY {}", RANDOM[:32]),
    ('variable "db_password" {{\n  default = "{}"\n}}', CHOSEN),
    ("ASANA_PAT={}", "2/60395206354/12039552819:" + HEX),
    ("{}", "dp.st." + "prd." + RANDOM[:40]),
    ('http.secret.key="{}"', RANDOM),
    ("API_KEY ?= {}", RANDOM[:32]),
    ("PHPSESSID={}", "8imkmbvnhi1by" + "5kd58jxewzyxr"),
    ("echo '{}' | kinit jo", CHOSEN),
    ("echo -n '{}' | cryptsetup luksOpen /dev/sda1 x -", CHOSEN),
    ("APPLICATION_SPECIFIC_PASSWORD={}", "abqd-efgh" + "-ijkl-mnop"),
    ("pbkdf2_sha256$600000${}", RANDOM[:22] + "$" + RANDOM),
    ("-----BEGIN OpenVPN Static key V1-----\n{}\n", HEX),
    ('MNEMONIC="{}"', "witch collapse practice feed shame open road creek again least ice dog"),
]


def test_a_secret_is_known_by_what_stands_beside_it():
    for form, value in BESIDE:
        masked = mask_secrets(form.format(value))
        assert value not in masked
        assert mask_secrets(masked) == masked


def test_the_key_beside_a_user_of_kaggle_is_masked():
    assert HEX not in mask_secrets(f'{{"username":"tea","key":"{HEX}"}}')


@pytest.mark.parametrize("between", ["\u200b", "\u200d\ufeff", "\\\n    "])
def test_a_token_that_is_broken_up_is_masked(between):
    token = "gh" + "p_" + RANDOM[:36]
    masked = mask_secrets(f"push with {token[:12]}{between}{token[12:]} now")
    assert masked == "push with <secret:github-token> now"
    assert mask_secrets(f"plain{between}text") == f"plain{between}text"
    assert list(may_hold_secrets([f"{token[:9]}{between}{token[9:]}"], f"{token[:9]}{between}"))


def test_a_line_that_goes_on_is_looked_at_only_where_its_parts_make_a_secret():
    token = "gh" + "p_" + RANDOM[:36]
    texts = ["cmake .. \\\n  -DBUILD=on", f"push {token[:12]}\\\n  {token[12:]}"]
    assert not list(may_hold_secrets(texts[:1], texts[0]))
    assert list(may_hold_secrets(texts, "\n".join(texts)))[:1] == [1]


ENDING_LIKE_SECRETS = [
    "CACHE_KEY=0f3a9c1d0f3a9c1d0f3a9c1d0f3a9c1d",
    "restore_key: v1-deps-linux-2024",
    "sort_key = 'created_at2'",
    'primary_key="user_id_1"',
    "redis-cli -a",
    "grep -w pattern2 file",
    "cp -a src2/dir target",
    'getToken("identifier_name2")',
    "<key>CFBundleVersion</key>",
    '("password", "validators_2")',
    "htpasswd -b file user PASSWORD",
    "echo foo | sudo -S make",
    "    password: Uint8Array\n",
    "password=user_password2\n",
    "set auth_mode method2",
    "auth(first, second2)",
    "total=$12$34",
    "partition_key=tenant_42",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    'object_key = "uploads/2024/01/31/9f86d081-884c-7d65.png"',
    "idempotency_key = '8e03978e40d543ddbc936894a57f9324'",
    "password: process.env.DB_PASSWORD2,",
    "const role = user.password ? 'has-password' : 'sso-only-2';",
    "const secret = process.env.SECRET || 'secret';",
    "password: ${DB_PASSWORD:-postgres}",
    "the password manager1Password stores it",
    "my password is base64-encoded before it is sent",
    "with password authentication2 disabled",
    "rsync -u src2 -P dest2024",
    "routing_key: shop.orders.2024",
    "nf-core-rnaseq-3.14.0-results",
    '"response_id":"gen-1746007142-eSY8TlOg1Cz3U7E9OtpM"',
    'parser.add_argument("-a", "--auth",  default=False2)',
    '"key": "uploads/2024/01/V1StGXR8.bin"',
    "INSERT INTO users (name, password_hash, created) VALUES (?, ?, '2024-01-31');",
]


def test_names_that_end_like_secrets_keep_ordinary_values():
    assert [text for text in ENDING_LIKE_SECRETS if mask_secrets(text) != text] == []


@pytest.mark.parametrize(
    "name",
    [
        "acme/shop0",
        "6fa459ea-ee8a-3ca4-894e-db77e160355e",
        "django__django",
        "whsec_" + "NErWiBwyG/glftujMA66ixDRH",
    ],
)
def test_a_name_is_masked_as_a_text_is(name: str) -> None:
    assert masked_name(name) == mask_secrets(name)


def test_a_plain_name_needs_no_rules_of_secrets() -> None:
    code = (
        "import sys\nfrom contextgraph.text import masked_name\n"
        "assert masked_name('acme/shop0') == 'acme/shop0'\n"
        "print('contextgraph.text.secret_rules' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def drawn(characters: str, length: int) -> str:
    """Return what a provider would generate, always the same."""
    return "".join(Random(15).choices(characters, k=length))


MIXED, DIGITS = string.ascii_letters + string.digits, "0123456789abcdef"


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("acme_live_", drawn(MIXED, 40), ""),
        ("DISK_KEY=", drawn(MIXED, 20), ""),
        ("Authorization: AcmeKey ", f"{drawn(DIGITS, 8)}-{drawn(DIGITS, 12)}", ""),
        ("Acme-Subscription-Key: ", drawn(DIGITS, 32), ""),
        ("export SESSION_TOKEN=", drawn(f"{MIXED}+/", 600), ""),
        ("the password is ", drawn(MIXED, 14), " for now"),
        ("login: ann password: ", drawn(MIXED, 14), ""),
        ("acme api key: ", drawn(DIGITS, 32), ""),
        ("smtp_pass=", drawn(MIXED, 14), ""),
        ('$dbpass = "', drawn(MIXED, 14), '";'),
        ("    pass: '", drawn(MIXED, 14), "',"),
        ('let token: &str = "', drawn(MIXED, 40), '";'),
        ("acme login ", drawn(DIGITS, 40), ""),
        ("acme config add-authtoken ", drawn(MIXED, 40), ""),
        ("mc alias set s3 https://minio.acme.dev ann ", drawn(MIXED, 24), ""),
        ("poetry config http-basic.acme ann ", drawn(MIXED, 16), ""),
        ("CREATE ROLE shop LOGIN PASSWORD '", drawn(MIXED, 14), "';"),
        ("https://acme.example/f?code=", drawn(MIXED, 54), "&x=1"),
        ("", f"{drawn(DIGITS, 32)}-us14", ""),
        ("openssl enc -aes-256-cbc -k ", drawn(MIXED, 16), " -in f"),
    ],
)
def test_what_is_generated_is_masked_where_a_secret_stands(before, value, after):
    masked = mask_secrets(f"seen\n{before}{value}{after}\n")
    assert value[-8:] not in masked
    assert masked.endswith(f"{after}\n")


LOOKING_GENERATED = [
    f"cache_key: v1-deps-{drawn(DIGITS, 40)}",
    f'public_key = "{drawn(MIXED, 43)}="',
    f"continuation-token: {drawn(MIXED, 60)}",
    f"chatcmpl-{drawn(MIXED, 29)}",
    f"resp_{drawn(DIGITS, 48)}",
    f"/nix/store/{drawn('0123456789abcdfghijklmnpqrsvwxyz', 32)}-python3-3.11",
    "test_password_reset_sends_1_mail_to_each_of_3_users_and_none_to_others",
    "the password is too short: 12 characters or more",
    "compass = 'North12345', bypass = 'Rule12345Abc'",
    "The token was Int32Array1 there",
    f"sha512-{drawn(f'{MIXED}+/', 86)}==",
    "login --username ann --registry registry1.acme.example",
    'password "required"; the password was "accepted"',
    "SECRET=readFromVaultOrFail TOKEN_URL=getHTMLFromURL",
    "password=getPasswordFromEnvironment",
    '{"name": "password", "value": "required"}',
    "git checkout -b fix=2",
    "git config user.email ann@acme.example",
    "the password is checked in step 2024",
    "http -a user:pass https://x.test",
    "BASIC_AUTH=user/pass",
    "helm upgrade --set auth.existingSecret=db-credentials-2",
    "openssl enc -aes-256-cbc -pass file:/run/p1",
    "psql -U app2 -h db1 -p 5432",
    f"bearer {HEX}",
]


def test_what_only_looks_generated_stays():
    assert [
        text for text in LOOKING_GENERATED if mask_secrets(f"seen\n{text}\n") != f"seen\n{text}\n"
    ] == []


@pytest.mark.parametrize("end", [" ", "\n", ""])
def test_a_value_without_quotes_has_at_most_4096_characters(end):
    value = (RANDOM * 200)[:4096]
    assert value not in mask_secrets(f"API_KEY={value}{end}")
    assert mask_secrets(f"API_KEY=1{value}{end}") == f"API_KEY=1{value}{end}"
    assert (
        mask_secrets(f"API_KEY={value[:2048]}&{value[:2047]}{end}")
        == f"API_KEY=<secret:api-key>{end}"
    )


@pytest.mark.parametrize("name", ["пароль", "hasło", "密码"])
def test_a_name_within_a_secret_leads_to_the_secret_after_it(name):
    given = f"parola={RANDOM}{name}: {RANDOM[::-1]}"
    assert mask_secrets(given) == "parola=<secret:password> <secret:password>"


def test_of_two_secrets_that_overlap_nothing_is_shown():
    option, key = drawn(MIXED, 100), "AP" + f"A91b{drawn(MIXED, 134)}"
    assert mask_secrets(f"net user ann {option}:{key} /add") == "net user ann <secret:option> /add"


@pytest.mark.parametrize("parts", [2, 40, 300])
def test_a_value_with_many_ampersands_is_masked_whole(parts: int) -> None:
    value = "&".join(f"{number:x}Zq8vR{number}" for number in range(parts))

    assert mask_secrets(f"export API_TOKEN={value}\n") == "export API_TOKEN=<secret:token>\n"


@pytest.mark.parametrize(
    "line", ["pass: {}", "enable secret {}", "enable secret 5 {}", "user: ada\\npass: {}"]
)
@pytest.mark.parametrize("end", ["\\n", "\\\\n", "\\r\\n"])
def test_a_secret_of_a_line_is_masked_where_the_line_is_quoted(line: str, end: str) -> None:
    """As in the JSON of a log: the end of a line is a backslash and a letter there."""
    secret = drawn(MIXED, 16)
    masked = mask_secrets(f'{{"seen": "host r1{end}{line.format(secret)}{end}on"}}')
    assert secret not in masked
    assert masked.endswith(f'>{end}on"}}')
