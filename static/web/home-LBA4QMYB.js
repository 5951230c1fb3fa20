import{e}from"./chunk-2QQ7WMLX.js";import"./chunk-OOJM4CTU.js";e();
