"""Domain model: offers, requests, payments, tasks, results, and USDC encoding.

Nothing here accesses the chain, the disk or a vendor.
"""

from gateway.domain import built_in as _built_in
from gateway.domain.capabilities import (
    DOCUMENT_EXTRACTION,
    DOCUMENT_FORMATS,
    DOCUMENT_PARSING,
    IMAGE_EDITING,
    OUTPUT_FORMATS,
    TEXT_TO_IMAGE,
    Capability,
    Prompt,
)
from gateway.domain.kinds import (
    DATA,
    DOCUMENT_FILE,
    MAX_PICTURE_PIXELS,
    MIN_PICTURE_SIDE,
    PICTURE_FILE,
    PICTURE_FORMATS,
    PICTURE_TYPES,
    PICTURES,
    TEXT,
    FileKind,
    InSandbox,
    Limit,
    ResultKind,
)
from gateway.domain.offers import (
    ASPECT_RATIOS,
    MAX_ATTEMPTS,
    MAX_CALLBACK_CHARS,
    MAX_FILE_BYTES,
    MAX_FILE_NAME_CHARS,
    MAX_PROMPT_CHARS,
    PAYER_SIGNATURE,
    QUOTE_LIFE_S,
    TX_HASH,
    Attachment,
    Choice,
    Endpoint,
    GenerationRequest,
    Handle,
    Link,
    Output,
    Pending,
    PriceStep,
    Result,
    Traits,
)
from gateway.domain.records import (
    NO_ADDRESS,
    Authorization,
    Block,
    Decision,
    Flow,
    Log,
    LongText,
    MinedTransfer,
    Payment,
    PaymentState,
    Receipt,
    Refund,
    RefundCase,
    StoredOutput,
    StoredResult,
    Task,
    TaskStatus,
    Transfer,
)
from gateway.domain.units import (
    KILOCHARACTERS,
    MEGAPIXEL,
    PAGE,
    SECOND,
    USDC_DECIMALS,
    Unit,
    UnitPrice,
    dollars,
    usdc,
)
